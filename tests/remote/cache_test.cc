#include "trireme/remote/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <thread>

#include "tests/base/error_of.h"
#include "tests/base/test_folder.h"

namespace trireme::remote {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::error_of;
using testing::HasSubstr;

class CacheTest : public test::TestFolder {
 protected:
  void fill(const std::function<void(const Descriptor&)>& fetch,
            const std::stop_token& stop = {}) const {
    cache.fill(entry, stop, fetch);
  }
  static void write_abc(const Descriptor& file) {
    ASSERT_EQ(::pwrite(file.number(), "abc", 3, 0), 3);
  }

  const Cache cache{folder / "cache", 1000, 150ms};
  const CacheEntry entry{
      .name = "0123456789abcdef0123456789abcdef-x", .bytes = 3, .shown = "s3://b/x"};
  const fs::path part = folder / "cache" / "0123456789abcdef0123456789abcdef-x.part";
};

TEST_F(CacheTest, ThreadsFillAnEntryOnce) {
  std::atomic<int> num_fetches = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        fill([&](const Descriptor& file) {
          ++num_fetches;
          std::this_thread::sleep_for(20ms);
          write_abc(file);
        });
        EXPECT_TRUE(cache.open(entry).is_open());
      });
    }
  }
  EXPECT_EQ(num_fetches, 1);
  EXPECT_FALSE(fs::exists(part));
}

TEST_F(CacheTest, AFetchThatFailsLeavesNothing) {
  EXPECT_EQ(error_of([&] {
              fill([](const Descriptor&) { throw Error(ErrorKind::kTimeout, "late"); });
            }).message(),
            "late");
  EXPECT_FALSE(cache.open(entry).is_open());
  EXPECT_FALSE(fs::exists(part));
  fill(write_abc);
  EXPECT_TRUE(cache.open(entry).is_open());
}

TEST_F(CacheTest, WhoWaitsForOneThatComesNoFurtherGivesUp) {
  const FileLock other(part, 0ms);
  const Error error = error_of([&] { fill(write_abc); });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.message(), HasSubstr("'s3://b/x' is being fetched by another process"));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(error_of([&] { fill(write_abc, stop.get_token()); }).kind(), ErrorKind::kCancelled);
}

TEST_F(CacheTest, WhoWaitsForOneThatWritesStays) {
  std::optional<FileLock> other(std::in_place, part, 0ms);
  std::jthread waiter([&] { fill(write_abc); });
  for (int i = 0; i < 10; ++i) {
    std::ofstream(part) << i;
    std::this_thread::sleep_for(40ms);
  }
  fs::remove(part);  // as one that fails does
  other.reset();
  waiter.join();
  EXPECT_TRUE(cache.open(entry).is_open());
}

TEST_F(CacheTest, WhatIsHeldStaysUntilItIsNot) {
  const CacheEntry large{
      .name = "0123456789abcdef0123456789abcdef-y", .bytes = 999, .shown = "s3://b/y"};
  fill(write_abc);
  write("cache/photo.jpg", std::string(5000, 'x'));
  std::optional<Cache::Lease> lease(cache.hold({entry}));
  const Error error = error_of([&] { cache.hold({large}); });
  EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
  EXPECT_THAT(error.message(), HasSubstr("999 bytes of 1 files, of which the first is 's3://b/y'"));
  EXPECT_TRUE(cache.open(entry).is_open());
  lease.reset();
  const Cache::Lease other = cache.hold({large});
  EXPECT_FALSE(cache.open(entry).is_open());
  EXPECT_TRUE(fs::exists(folder / "cache" / "photo.jpg")) << "not the cache's";
}

}  // namespace
}  // namespace trireme::remote
