#include "trireme/data/padding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/base/error_of.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using trireme::test::error_of;

std::vector<Lengths> padded_choices() {
  return {{{"frames", 10}, {"words", 4}},
          {{"frames", 20}, {"words", 4}},
          {{"frames", 20}, {"words", 8}}};
}

TEST(Padding, TheFirstThatHoldsAllDimensions) {
  EXPECT_EQ(padded_index(padded_choices(), {{"frames", 10}, {"words", 1}}), 0);
  EXPECT_EQ(padded_index(padded_choices(), {{"frames", 11}, {"words", 0}}), 1);
  EXPECT_EQ(padded_index(padded_choices(), {{"frames", 1}, {"words", 5}}), 2);
  EXPECT_THAT(
      error_of([] { padded_index(padded_choices(), {{"frames", 21}, {"words", 1}}); }).message(),
      HasSubstr("longer than the longest, frames 20, words 8"));
  EXPECT_THAT(error_of([] { padded_index(padded_choices(), {{"words", 1}}); }).message(),
              HasSubstr("does not say how long its 'frames' is"));
}

/// Of fields and padded lengths alone.
class Declared : public Source {
 public:
  Declared(std::vector<Field> fields, std::vector<Lengths> padded)
      : fields_(std::move(fields)), padded_(std::move(padded)) {}
  std::int64_t num_samples() const override { return 1; }
  const std::vector<Field>& fields() const override { return fields_; }
  std::vector<Lengths> padded_lengths() const override { return padded_; }
  void read(Sample, std::span<const std::span<std::byte>>) const override {}

 private:
  std::vector<Field> fields_;
  std::vector<Lengths> padded_;
};

std::string refusal(std::vector<Field> fields, std::vector<Lengths> padded) {
  const Declared source(std::move(fields), std::move(padded));
  return error_of([&] { check_padding(source); }).message();
}

TEST(Padding, ASourceIsChecked) {
  const Field words{"words", Dtype::kI32, {8}, {{0, "words"}}};
  const Field audio{"audio", Dtype::kF32, {20, 3}, {{0, "frames"}}};
  check_padding(Declared({words, audio}, padded_choices()));
  check_padding(Declared({{"x", Dtype::kF32, {3}}}, {}));
  EXPECT_THAT(refusal({words}, padded_choices()), HasSubstr("no field has a dimension 'frames'"));
  EXPECT_THAT(refusal({words}, {}), HasSubstr("the longest padded lengths are none"));
  EXPECT_THAT(refusal({words}, {{{"words", 4}}}),
              HasSubstr("the longest padded lengths are words 4"));
  EXPECT_THAT(refusal({words}, {{{"words", 8}}, {{"words", 8}}}), HasSubstr("shortest first"));
  EXPECT_THAT(refusal({words}, {{{"words", 9}}, {{"words", 8}}}), HasSubstr("shortest first"));
  EXPECT_THAT(refusal({words}, {{{"words", 0}}, {{"words", 8}}}), HasSubstr("at least 1"));
  EXPECT_THAT(refusal({words}, {{{"frames", 1}}, {{"words", 8}}}), HasSubstr("same dimensions"));
  Field odd = words;
  odd.padding = 0.5;
  EXPECT_THAT(refusal({odd}, {{{"words", 8}}}), HasSubstr("is i32 and cannot hold the padding"));
}

/// What microbatches are padded to, each by its longest sample.
std::vector<int> padded_by(const std::vector<int>& padded, const std::vector<std::int64_t>& order,
                           std::int64_t microbatch) {
  std::vector<int> result;
  for (std::size_t begin = 0; begin < order.size(); begin += microbatch) {
    int most = 0;
    for (std::int64_t i = 0; i < microbatch; ++i) most = std::max(most, padded[order[begin + i]]);
    result.push_back(most);
  }
  return result;
}

TEST(Padding, LanesHaveLikeWorkAndLittlePadding) {
  const std::vector<int> padded = {0, 3, 1, 0, 2, 1, 0, 3, 2, 0, 1, 0, 3, 0, 2, 1};
  const std::vector<std::int64_t> order = dealt_by_length(padded, {16, 2}, 4);
  std::vector<std::int64_t> sorted = order;
  std::ranges::sort(sorted);
  std::vector<std::int64_t> all(16);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all) << "each sample once";
  // Sorted in pairs 3 3 | 3 2 | 2 2 | 1 1 | 1 1 | 0 0 | 0 0 | 0 0, dealt to four lanes of two forth and back.
  EXPECT_THAT(padded_by(padded, order, 2), ElementsAre(3, 0, 3, 0, 2, 0, 1, 1));
  std::vector<std::int64_t> as_they_are(16);
  std::iota(as_they_are.begin(), as_they_are.end(), 0);
  EXPECT_THAT(padded_by(padded, as_they_are, 2), ElementsAre(3, 1, 2, 3, 2, 1, 3, 2));
  EXPECT_EQ(dealt_by_length({1, 1, 1, 1}, {4, 1}, 1), (std::vector<std::int64_t>{0, 1, 2, 3}));
}

template <typename T>
std::vector<T> padded_copy(const Field& field, std::vector<T> sample,
                           const std::vector<std::int64_t>& shape,
                           const std::vector<std::int64_t>& padded_shape) {
  std::int64_t elements = 1;
  for (const std::int64_t dim : padded_shape) elements *= dim;
  std::vector<T> result(elements, T{77});
  pad(field, std::as_bytes(std::span(sample)), shape, std::as_writable_bytes(std::span(result)),
      padded_shape);
  return result;
}

TEST(Padding, FillsBehindASampleInEveryDimension) {
  const Field words{"words", Dtype::kI32, {5}, {{0, "words"}}, -1};
  EXPECT_THAT(padded_copy<std::int32_t>(words, {4, 5}, {2}, {5}), ElementsAre(4, 5, -1, -1, -1));
  EXPECT_THAT(padded_copy<std::int32_t>(words, {}, {0}, {2}), ElementsAre(-1, -1));
  const Field matrix{"m", Dtype::kF32, {3, 3}, {{0, "a"}, {1, "b"}}, 0.5};
  EXPECT_THAT(padded_copy<float>(matrix, {1, 2, 3, 4}, {2, 2}, {3, 3}),
              ElementsAre(1, 2, .5F, 3, 4, .5F, .5F, .5F, .5F));
  EXPECT_THAT(padded_copy<float>(matrix, {1, 2, 3, 4}, {1, 4}, {2, 4}),
              ElementsAre(1, 2, 3, 4, .5F, .5F, .5F, .5F));
  const Field cube{"c", Dtype::kU8, {2, 2, 2}, {{1, "b"}}};
  EXPECT_THAT(padded_copy<std::uint8_t>(cube, {1, 2, 3, 4}, {2, 1, 2}, {2, 2, 2}),
              ElementsAre(1, 2, 0, 0, 3, 4, 0, 0));
}

TEST(Field, SaysItsShapeAtLengths) {
  const Field field{"x", Dtype::kF32, {7, 3}, {{0, "words"}}};
  EXPECT_EQ(field.shape_at({{"words", 2}}), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(field.num_bytes({{"words", 2}}), 24);
  EXPECT_EQ(field.num_bytes(), 84);
  EXPECT_THAT(error_of([&] { field.shape_at({{"words", 8}}); }).message(),
              HasSubstr("is 8 long (words); it may be 0 to 7"));
  EXPECT_THAT(error_of([&] { field.shape_at({}); }).message(), HasSubstr("has no length"));
}

}  // namespace
}  // namespace trireme::data
