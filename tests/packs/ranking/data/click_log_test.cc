#include "packs/ranking/data/click_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/base/error_of.h"
#include "tests/base/test_folder.h"

namespace trireme::ranking {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using ClickLogTest = test::TestFolder;

constexpr int kWords = 40;
using ClickWords = std::array<std::int32_t, kWords>;

ClickWords click_words(int index) {
  ClickWords words{};
  words[0] = index % 3 == 0 ? 1 : 0;
  for (int i = 1; i < kWords; ++i) words[static_cast<std::size_t>(i)] = index * 1000 + i * 7 - 10;
  for (int i = 14; i < kWords; ++i) words[static_cast<std::size_t>(i)] += 10;
  return words;
}

std::string log_of(int begin, int end) {
  std::string bytes;
  for (int index = begin; index < end; ++index) {
    const ClickWords words = click_words(index);
    bytes.append(reinterpret_cast<const char*>(words.data()), sizeof words);
  }
  return bytes;
}

struct Click {
  float label = -1;
  std::array<float, 13> dense{};
  std::array<std::int64_t, 26> categories{};
};

Click click_of(const data::Source& source, std::int64_t index) {
  Click click;
  const std::span<std::byte> to[] = {std::as_writable_bytes(std::span(&click.label, 1)),
                                     std::as_writable_bytes(std::span(click.dense)),
                                     std::as_writable_bytes(std::span(click.categories))};
  source.read({index}, to);
  return click;
}

TEST_F(ClickLogTest, RecordsAreLabelNumbersAndCategories) {
  const std::vector<std::filesystem::path> days = {write("day_0", log_of(0, 100)),
                                                   write("day_1", log_of(100, 130))};
  for (const data::FileAccess access : {data::FileAccess::kDirect, data::FileAccess::kBuffered}) {
    const ClickLog log(days, {.max_rows = 5'000, .access = access});
    ASSERT_EQ(log.num_samples(), 130);
    log.will_read(std::vector<data::Sample>{{129}, {3}});
    for (const int index : {0, 3, 99, 100, 129}) {
      const Click click = click_of(log, index);
      const ClickWords words = click_words(index);
      EXPECT_EQ(click.label, static_cast<float>(words[0]));
      for (std::size_t i = 0; i < 13; ++i) {
        EXPECT_NEAR(click.dense[i], std::log(1.0 + std::max(words[1 + i], 0)), 1e-6);
      }
      for (std::size_t i = 0; i < 26; ++i) EXPECT_EQ(click.categories[i], words[14 + i] % 5'000);
    }
  }
}

TEST_F(ClickLogTest, WhatIsDamagedIsNamed) {
  std::string bytes = log_of(0, 3);
  bytes[160] = 2;
  bytes[2 * 160 + 4 * 20 + 3] = static_cast<char>(0x80);
  const ClickLog log({write("day_0", bytes)}, {});
  EXPECT_EQ(click_of(log, 0).label, 1);
  const Error label = test::error_of([&] { click_of(log, 1); });
  EXPECT_EQ(label.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(label.message(), AllOf(HasSubstr("record 1 of '"), HasSubstr("day_0' has label 2")));
  EXPECT_THAT(test::error_of([&] { click_of(log, 2); }).message(),
              AllOf(HasSubstr("record 2 of '"), HasSubstr("category -"), HasSubstr("in column 6")));
  EXPECT_THAT(
      test::error_of([&] { const ClickLog other({path("day_0")}, {.num_dense = 11}); }).message(),
      HasSubstr("no whole number of records of 152"));
  EXPECT_THAT(
      test::error_of([&] { const ClickLog other({path("day_0")}, {.num_dense = -1}); }).message(),
      HasSubstr("-1 dense numbers"));
  EXPECT_THAT(
      test::error_of([&] { const ClickLog other({path("day_0")}, {.max_rows = -1}); }).message(),
      HasSubstr("-1 rows"));
  EXPECT_THAT(test::error_of([&] { log.read({0}, {}); }).message(), HasSubstr("destinations"));
}

}  // namespace
}  // namespace trireme::ranking
