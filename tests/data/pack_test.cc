#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>

#include "tests/base/error_of.h"
#include "trireme/data/first_fit.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using trireme::test::error_of;

/// One row a line: `0 3 | 1 | 2`.
std::string rows_text(const PackedRows& rows) {
  std::string text;
  for (std::int64_t row = 0; row < rows.num_rows(); ++row) {
    text += row == 0 ? "" : " | ";
    for (const std::int64_t sample : rows.row(row)) {
      text += (text.empty() || text.back() == ' ' ? "" : " ") + std::to_string(sample);
    }
  }
  return text;
}

struct FitOptions {
  std::vector<std::int64_t> row = {10};
  std::int64_t max_segments = 32;
  std::int64_t open_rows = 2;
};

std::string fitted(const std::vector<std::vector<std::int64_t>>& lengths, FitOptions options = {}) {
  FirstFit fit(options.row, options.max_segments, options.open_rows);
  for (const auto& own : lengths) fit.add(own);
  return rows_text(fit.finish());
}

TEST(FirstFit, EachGoesToTheFirstOpenRowThatHasRoom) {
  EXPECT_EQ(fitted({{4}, {7}, {5}, {6}, {3}}), "0 2 | 1 4 | 3");
  EXPECT_EQ(fitted({{4}, {7}, {5}, {6}, {3}}, {.open_rows = 1}), "0 | 1 | 2 | 3 4");
  EXPECT_EQ(fitted({{4}, {7}, {5}, {6}, {1}}, {.open_rows = 3}), "0 2 4 | 1 | 3");
  EXPECT_EQ(fitted({{10}, {10}, {0}}), "0 2 | 1");
  EXPECT_EQ(fitted({}), "");
}

TEST(FirstFit, RowsHaveRoomInEveryDimensionAndForSoManySamples) {
  EXPECT_EQ(fitted({{4, 1}, {4, 4}, {1, 1}}, {.row = {10, 4}}), "0 2 | 1");
  EXPECT_EQ(fitted({{1}, {1}, {1}, {1}, {1}}, {.max_segments = 2}), "0 1 | 2 3 | 4");
}

/// Sample i: a text of `lengths[i]` tokens, each 1000 i + its place + 100000 x visit, in twos (a token and its negative); a label;
/// and a second text, of notes.
class Texts : public Source {
 public:
  explicit Texts(std::vector<std::int64_t> lengths, std::int64_t most = 12)
      : lengths_(std::move(lengths)) {
    fields_ = {{"tokens", Dtype::kI64, {most, 2}, {{0, "words"}}, -7},
               {"label", Dtype::kI32, {3}},
               {"notes", Dtype::kI32, {4}, {{0, "notes"}}}};
  }
  std::int64_t num_samples() const override { return std::ssize(lengths_); }
  const std::vector<Field>& fields() const override { return fields_; }
  std::vector<Lengths> padded_lengths() const override {
    return {{{"notes", 4}, {"words", fields_[0].shape[0]}}};
  }
  Lengths lengths_of(Sample sample) const override {
    const std::int64_t words = lengths_[static_cast<std::size_t>(sample.index)];
    return {{"notes", sample.index % 3}, {"words", words}};
  }
  void read(Sample sample, std::span<const std::span<std::byte>> to) const override {
    const auto put = [](std::span<std::byte> field, std::size_t i, auto value) {
      std::memcpy(field.subspan(i * sizeof value, sizeof value).data(), &value, sizeof value);
    };
    for (std::size_t i = 0; i < to[0].size() / 16; ++i) {
      const std::int64_t token =
          1000 * sample.index + static_cast<std::int64_t>(i) + 100'000 * sample.visit;
      put(to[0], 2 * i, token);
      put(to[0], 2 * i + 1, -token);
    }
    for (std::size_t i = 0; i < 3; ++i) put(to[1], i, static_cast<std::int32_t>(sample.index));
    for (std::size_t i = 0; i < to[2].size() / 4; ++i) {
      put(to[2], i, static_cast<std::int32_t>(sample.index));
    }
  }
  void will_read(std::span<const Sample> samples) const override {
    for (const Sample& sample : samples) told.push_back(sample.index);
  }

  std::vector<std::int64_t> lengths_;
  mutable std::vector<std::int64_t> told;

 private:
  std::vector<Field> fields_;
};

using Row = std::map<std::string, std::vector<std::int64_t>>;

/// All fields of a row, by name, whatever their dtype.
Row read_row(const Source& packed, Sample sample) {
  std::vector<std::vector<std::byte>> bytes;
  for (const Field& field : packed.fields()) {
    bytes.emplace_back(static_cast<std::size_t>(field.num_bytes()), std::byte{0x55});
  }
  packed.read(sample, std::vector<std::span<std::byte>>(bytes.begin(), bytes.end()));
  Row row;
  for (std::size_t f = 0; f < bytes.size(); ++f) {
    const Field& field = packed.fields()[f];
    const std::size_t width = field.dtype == Dtype::kI64 ? 8 : 4;
    for (std::size_t at = 0; at < bytes[f].size(); at += width) {
      std::int64_t wide = 0;
      std::int32_t narrow = 0;
      std::memcpy(width == 8 ? static_cast<void*>(&wide) : &narrow, &bytes[f][at], width);
      row[field.name].push_back(width == 8 ? wide : narrow);
    }
  }
  return row;
}

TEST(Pack, ARowHasItsSamplesBehindEachOther) {
  const auto packed = pack(std::make_shared<Texts>(std::vector<std::int64_t>{2, 3, 1}),
                           {.row = {{"notes", 4}, {"words", 6}}, .max_segments = 3});
  ASSERT_EQ(packed->num_samples(), 1);
  const Row row = read_row(*packed, {.index = 0, .visit = 1});
  EXPECT_THAT(row.at("tokens"), ElementsAre(100000, -100000, 100001, -100001, 101000, -101000,
                                            101001, -101001, 101002, -101002, 102000, -102000));
  EXPECT_THAT(row.at("words_segments"), ElementsAre(1, 1, 2, 2, 2, 3));
  EXPECT_THAT(row.at("words_positions"), ElementsAre(0, 1, 0, 1, 2, 0));
  EXPECT_THAT(row.at("words_lengths"), ElementsAre(2, 3, 1));
  EXPECT_THAT(row.at("label"), ElementsAre(0, 0, 0, 1, 1, 1, 2, 2, 2));
  EXPECT_THAT(row.at("notes"), ElementsAre(1, 2, 2, 0));
  EXPECT_THAT(row.at("notes_segments"), ElementsAre(2, 3, 3, 0));
  EXPECT_THAT(row.at("notes_positions"), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(row.at("notes_lengths"), ElementsAre(0, 1, 2));
}

TEST(Pack, BehindTheSamplesIsPadding) {
  const auto packed = pack(std::make_shared<Texts>(std::vector<std::int64_t>{1, 4}, 4));
  ASSERT_EQ(packed->num_samples(), 2);
  EXPECT_EQ(packed->fields()[1].shape, (std::vector<std::int64_t>{32, 3}));
  const Row row = read_row(*packed, {.index = 0});
  EXPECT_THAT(row.at("tokens"), ElementsAre(0, 0, -7, -7, -7, -7, -7, -7));
  EXPECT_THAT(row.at("words_segments"), ElementsAre(1, 0, 0, 0));
  EXPECT_EQ(row.at("label"), std::vector<std::int64_t>(96));
}

std::shared_ptr<Texts> random_texts(std::size_t count) {
  std::mt19937 random(5);
  std::vector<std::int64_t> lengths(count);
  for (std::int64_t& length : lengths) length = random() % 13;
  return std::make_shared<Texts>(lengths);
}

TEST(Pack, NoTokenIsLostOrThereTwice) {
  const auto texts = random_texts(3000);
  const auto packed = pack(texts, {.row = {{"notes", 64}, {"words", 40}}, .max_segments = 8});
  std::multiset<std::int64_t> expected, found;
  std::int64_t num_tokens = 0;
  for (std::int64_t i = 0; i < texts->num_samples(); ++i) {
    const std::int64_t length = texts->lengths_[static_cast<std::size_t>(i)];
    for (std::int64_t k = 0; k < length; ++k) expected.insert(1000 * i + k);
    num_tokens += length;
  }
  for (std::int64_t r = 0; r < packed->num_samples(); ++r) {
    const Row row = read_row(*packed, {.index = r});
    for (std::size_t i = 0; i < 40; ++i) {
      if (row.at("words_segments")[i] == 0) continue;
      found.insert(row.at("tokens")[2 * i]);
      EXPECT_EQ(row.at("tokens")[2 * i] % 1000, row.at("words_positions")[i]);
    }
  }
  EXPECT_EQ(found, expected);
  EXPECT_GT(static_cast<double>(num_tokens),
            0.95 * 40 * static_cast<double>(packed->num_samples()));
}

TEST(Pack, ASourceIsToldWhichSamplesARowHas) {
  const auto texts = std::make_shared<Texts>(std::vector<std::int64_t>{4, 7, 5, 6, 3});
  const auto packed = pack(texts, {.row = {{"notes", 9}, {"words", 10}}, .open_rows = 2});
  ASSERT_EQ(packed->num_samples(), 3);
  packed->will_read(std::vector<Sample>{{.index = 2}, {.index = 0}});
  EXPECT_THAT(texts->told, ElementsAre(3, 0, 2));
  EXPECT_EQ(error_of([&] { packed->will_read(std::vector<Sample>{{.index = 3}}); }).kind(),
            ErrorKind::kInvalidArgument);
}

TEST(Pack, ItsIdentityIsThatOfSourceAndOptions) {
  const auto texts = random_texts(20);
  const std::string own = pack(texts)->identity();
  EXPECT_EQ(own, pack(texts)->identity());
  EXPECT_NE(own, pack(random_texts(21))->identity());
  EXPECT_NE(own, pack(texts, {.max_segments = 31})->identity());
  EXPECT_NE(own, pack(texts, {.open_rows = 63})->identity());
  EXPECT_NE(own, pack(texts, {.row = {{"notes", 4}, {"words", 13}}})->identity());
}

std::string refusal(const std::shared_ptr<const Source>& source, const PackOptions& options = {}) {
  const Error error = error_of([&] { pack(source, options); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  return error.message();
}

TEST(Pack, WhatCannotBePackedIsRefused) {
  const auto texts = std::make_shared<Texts>(std::vector<std::int64_t>{4, 7, 12});
  const auto plain = std::make_shared<InMemorySource>(
      1, std::vector{
             InMemorySource::Column{{"x", Dtype::kI32, {}}, share(std::vector<std::int32_t>{1})}});
  EXPECT_THAT(refusal(nullptr), HasSubstr("no source"));
  EXPECT_THAT(refusal(plain), HasSubstr("nothing to pack"));
  EXPECT_THAT(refusal(mix({{texts, 1}})), HasSubstr("pack its parts"));
  EXPECT_THAT(refusal(repeat(texts, {.times = 2})), HasSubstr("repeat the packed rows"));
  EXPECT_THAT(refusal(texts, {.row = {{"notes", 4}, {"words", 11}}}),
              HasSubstr("sample 2 has 12 'words', a row 11"));
  EXPECT_THAT(refusal(texts, {.row = {{"words", 11}}}), HasSubstr("notes 4, words 12"));
  EXPECT_THAT(refusal(texts, {.row = {{"notes", 0}, {"words", 12}}}), HasSubstr("0 'notes'"));
  EXPECT_THAT(refusal(texts, {.max_segments = 0}), HasSubstr("0 samples of a row at most"));
  EXPECT_THAT(refusal(texts, {.open_rows = 0}), HasSubstr("0 open rows"));
}

/// A mixture of packed sources is one of rows.
TEST(Pack, RowsCanBeMixed) {
  const auto packed = pack(random_texts(50));
  EXPECT_EQ(mix({{packed, 1}, {pack(random_texts(60)), 1}})->fields(), packed->fields());
}

class Fickle : public Texts {
 public:
  using Texts::Texts;
  Lengths lengths_of(Sample sample) const override {
    Lengths lengths = Texts::lengths_of(sample);
    if (sample.index == 1) lengths["words"] += sample.visit;
    return lengths;
  }
};

TEST(Pack, LengthsThatDependOnTheVisitAreMet) {
  const auto packed = pack(std::make_shared<Fickle>(std::vector<std::int64_t>{5, 7}));
  read_row(*packed, {.index = 0, .visit = 0});
  const Error error = error_of([&] { read_row(*packed, {.index = 0, .visit = 1}); });
  EXPECT_THAT(error.message(), HasSubstr("sample 1 has other lengths"));
}

}  // namespace
}  // namespace trireme::data
