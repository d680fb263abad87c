#include "trireme/data/column_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/base/error_of.h"

namespace trireme::data {
namespace {

class SizedValues : public ColumnValues {
 public:
  explicit SizedValues(std::int64_t bytes) : bytes_(bytes) {}
  std::int64_t num_rows() const override { return 1; }
  std::int64_t num_bytes() const override { return bytes_; }
  std::vector<std::byte> read(std::int64_t) const override { return {}; }

 private:
  std::int64_t bytes_;
};

class ColumnCacheTest : public testing::Test {
 protected:
  ColumnCache::Values get(int group, std::int64_t bytes = 10) {
    return cache.get({.group = group}, [&] {
      ++num_decoded;
      return std::make_shared<SizedValues>(bytes);
    });
  }

  ColumnCache cache{30};
  std::atomic<int> num_decoded = 0;
};

TEST_F(ColumnCacheTest, WhatWasUsedLastIsKept) {
  for (const int group : {0, 1, 2, 0, 3, 0}) get(group);
  EXPECT_EQ(num_decoded, 4);
  EXPECT_EQ(cache.num_bytes(), 30);
  get(2);
  get(3);
  EXPECT_EQ(num_decoded, 4) << "1 was used longest ago";
  get(1);
  EXPECT_EQ(num_decoded, 5);
  EXPECT_EQ(cache.num_bytes(), 30);
}

TEST_F(ColumnCacheTest, OneThatIsTooLargeIsKeptUntilTheNext) {
  get(0);
  get(7, 1000);
  const auto kept = get(7, 1000);
  EXPECT_EQ(num_decoded, 2);
  EXPECT_EQ(cache.num_bytes(), 1000);
  get(0);
  EXPECT_EQ(cache.num_bytes(), 10);
  EXPECT_EQ(kept->num_bytes(), 1000) << "who reads it has it still";
}

TEST_F(ColumnCacheTest, AFailureIsForgotten) {
  for (int i = 0; i < 2; ++i) {
    const Error error = test::error_of([&] {
      cache.get({}, []() -> ColumnCache::Values { throw Error(ErrorKind::kIo, "gone"); });
    });
    EXPECT_EQ(error.message(), "gone");
    EXPECT_EQ(cache.num_bytes(), 0);
  }
  EXPECT_EQ(get(0)->num_rows(), 1);
}

TEST_F(ColumnCacheTest, ThreadsThatWantOneColumnDecodeItOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int group = 0; group < 3; ++group) {
        cache.get({.group = group}, [&] {
          ++num_decoded;
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          return std::make_shared<SizedValues>(10);
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_decoded, 3);
}

}  // namespace
}  // namespace trireme::data
