#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/data/folder_files.h"
#include "tests/data/number_source.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"

namespace trireme::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using SkipDamagedTest = FolderFiles;

/// Numbers of two lengths, by turns: 1 and 2.
class RaggedNumbers : public Source {
 public:
  explicit RaggedNumbers(std::set<std::int64_t> damaged) : damaged_(std::move(damaged)) {}

  std::int64_t num_samples() const override { return 8; }
  const std::vector<Field>& fields() const override { return fields_; }
  std::vector<Lengths> padded_lengths() const override { return {{{"n", 1}}, {{"n", 2}}}; }
  Lengths lengths_of(Sample sample) const override {
    // Of the first damaged one not even the length can be read.
    if (!damaged_.empty() && sample.index == *damaged_.begin()) refuse(sample);
    return {{"n", 1 + sample.index % 2}};
  }
  void read(Sample sample, std::span<const std::span<std::byte>> destinations) const override {
    if (damaged_.contains(sample.index)) refuse(sample);
    ASSERT_EQ(destinations[0].size(), 8 * (1 + sample.index % 2));
    std::memcpy(destinations[0].data(), &sample.index, sizeof sample.index);
  }

 private:
  [[noreturn]] static void refuse(Sample sample) {
    throw Error(ErrorKind::kCorruptData, "record " + std::to_string(sample.index) + " is broken");
  }

  std::set<std::int64_t> damaged_;
  std::vector<Field> fields_ = {{"number", Dtype::kI64, {2}, {{0, "n"}}}};
};

TEST_F(SkipDamagedTest, TheNextWholeSampleStandsIn) {
  const auto source =
      skip_damaged(std::make_shared<NumberSource>(0, 6, std::set<std::int64_t>{2, 3, 5}),
                   {.max_skipped = 3, .quarantine = folder / "damaged.jsonl"});
  const std::int64_t expected[] = {0, 1, 4, 4, 4, 0};
  for (std::int64_t visit = 0; visit < 3; ++visit) {
    for (std::int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(number_at(*source, i, visit).index, expected[i]);
      EXPECT_EQ(number_at(*source, i, visit).visit, visit);
    }
  }
  std::vector<std::string> lines;
  std::string line;
  for (std::ifstream file(folder / "damaged.jsonl"); std::getline(file, line);)
    lines.push_back(line);
  ASSERT_EQ(lines.size(), 3) << "one for each, however often it was met";
  EXPECT_EQ(lines[0], R"({"error":"record 2 is broken","sample":2})");
  EXPECT_EQ(lines[2], R"({"error":"record 5 is broken","sample":5})");
}

TEST_F(SkipDamagedTest, BeyondTheBudgetTheSampleIsNamed) {
  const auto numbers = std::make_shared<NumberSource>(0, 6, std::set<std::int64_t>{2, 4});
  const auto complaint = [](const Source& source, std::int64_t index) {
    const Error error = error_of([&] { number_at(source, index); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
    return error.message();
  };
  EXPECT_THAT(complaint(*skip_damaged(numbers, {}), 2),
              AllOf(HasSubstr("record 2 is broken"), HasSubstr("max_skipped is 0")));
  const auto one = skip_damaged(numbers, {.max_skipped = 1});
  EXPECT_EQ(number_at(*one, 2).index, 3);
  EXPECT_THAT(complaint(*one, 4), AllOf(HasSubstr("record 4 is broken; 1 others were skipped")));
  EXPECT_EQ(number_at(*one, 2).index, 3) << "known already";
  const auto none = skip_damaged(std::make_shared<NumberSource>(0, 2, std::set<std::int64_t>{0, 1}),
                                 {.max_skipped = 9});
  EXPECT_THAT(complaint(*none, 1), HasSubstr("sample 1 is damaged, and no other"));
}

/// What stands in does not depend on what a process has met before, nor on threads.
TEST_F(SkipDamagedTest, EveryProcessAndThreadFindsTheSame) {
  std::set<std::int64_t> damaged;
  for (std::int64_t i = 0; i < 100; ++i) {
    if (i * i % 7 < 3) damaged.insert(i);
  }
  const auto all_by = [&](int num_threads, bool is_backward) {
    const auto source = skip_damaged(std::make_shared<NumberSource>(0, 100, damaged),
                                     {.max_skipped = 100, .quarantine = folder / "damaged.jsonl"});
    std::vector<std::int64_t> found(100);
    std::vector<std::thread> threads;
    for (int t = 0; t < num_threads; ++t) {
      threads.emplace_back([&, t] {
        for (std::int64_t k = t; k < 100; k += num_threads) {
          const std::int64_t i = is_backward ? 99 - k : k;
          found[static_cast<std::size_t>(i)] = number_at(*source, i).index;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return found;
  };
  const auto expected = all_by(1, false);
  EXPECT_EQ(all_by(1, true), expected);
  EXPECT_EQ(all_by(4, false), expected);
  std::string line;
  std::size_t num_lines = 0;
  for (std::ifstream file(folder / "damaged.jsonl"); std::getline(file, line); ++num_lines) {
    EXPECT_TRUE(Json::accept(line)) << line;
  }
  EXPECT_EQ(num_lines, 3 * damaged.size()) << "each of three processes writes its own";
}

TEST_F(SkipDamagedTest, WhatStandsInIsAsLong) {
  const auto source = skip_damaged(std::make_shared<RaggedNumbers>(std::set<std::int64_t>{2, 4, 5}),
                                   {.max_skipped = 3});
  const std::int64_t expected[] = {0, 1, 3, 3, 6, 7, 6, 7};
  for (std::int64_t i = 0; i < 8; ++i) {
    const Lengths lengths = source->lengths_of({i});
    std::vector<std::int64_t> values(static_cast<std::size_t>(lengths.at("n")));
    const std::span<std::byte> destination = std::as_writable_bytes(std::span(values));
    source->read({i}, {&destination, 1});
    EXPECT_EQ(values[0], expected[i]) << i;
  }
}

TEST_F(SkipDamagedTest, OtherErrorsAreNotSkipped) {
  const auto source = skip_damaged(std::make_shared<NumberSource>(0, 6), {.max_skipped = 9});
  EXPECT_EQ(error_of([&] { number_at(*source, 6); }).kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of([&] { number_at(*source, -1); }).kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of([&] { skip_damaged(source, {.max_skipped = -1}); }).kind(),
            ErrorKind::kInvalidArgument);
  const auto full = skip_damaged(std::make_shared<NumberSource>(0, 6, std::set<std::int64_t>{1}),
                                 {.max_skipped = 9, .quarantine = folder / "none/damaged.jsonl"});
  const Error error = error_of([&] { number_at(*full, 1); });
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.message(), HasSubstr("none/damaged.jsonl"));
}

}  // namespace
}  // namespace trireme::data
