#include "trireme/kernels/reduce/combine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/kernels/random_numbers.h"
#include "tests/kernels/reference/combine.h"
#include "trireme/error.h"
#include "trireme/kernels/isa.h"

namespace trireme::kernels {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::array kDtypes = {Dtype::kF64, Dtype::kF32, Dtype::kF16, Dtype::kBf16, Dtype::kI64,
                                Dtype::kI32, Dtype::kI16, Dtype::kI8,  Dtype::kU8,   Dtype::kBool};
constexpr std::array kOps = {ReduceOp::kSum,       ReduceOp::kAverage, ReduceOp::kProduct,
                             ReduceOp::kMin,       ReduceOp::kMax,     ReduceOp::kAnd,
                             ReduceOp::kOr,        ReduceOp::kXor,     ReduceOp::kScaledSum,
                             ReduceOp::kRoundedSum};

template <typename T>
Bytes bytes_of(const std::vector<T>& numbers) {
  Bytes bytes(numbers.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

/// Numbers of the type whose sums round, or any bits of a whole number.
Bytes numbers(Dtype dtype, std::int64_t count, unsigned seed) {
  switch (dtype) {
    case Dtype::kF64:
      return bytes_of(random_numbers<double>(count, seed));
    case Dtype::kF32:
      return bytes_of(random_numbers<float>(count, seed));
    case Dtype::kF16:
      return bytes_of(random_numbers<F16>(count, seed, 3));
    case Dtype::kBf16:
      return bytes_of(random_numbers<Bf16>(count, seed));
    default:
      break;
  }
  std::mt19937 random(seed);
  Bytes bytes(static_cast<std::size_t>(count) * size_bytes(dtype));
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(dtype == Dtype::kBool ? random() % 2 : random());
  }
  return bytes;
}

/// What several ranks give.
struct Given {
  std::vector<Bytes> buffers;
  std::vector<const std::byte*> sources;
  std::vector<double> scales;  ///< Some that no f32 has.

  Given(Dtype dtype, int num_sources, std::int64_t count) {
    for (int s = 0; s < num_sources; ++s) buffers.push_back(numbers(dtype, count, s + 1));
    for (const Bytes& buffer : buffers) sources.push_back(buffer.data());
    for (int s = 0; s < num_sources; ++s) scales.push_back(1.0 / (s + 3) - 0.2);
  }
};

Bytes expected_of(const ElementReduction& reduction, const Given& given, std::int64_t count) {
  Bytes result(given.buffers[0].size());
  reference::combine(reduction, given.sources, result.data(), count);
  return result;
}

TEST(Combine, IsTheTreeElementByElement) {
  for (const Dtype dtype : kDtypes) {
    for (const ReduceOp op : kOps) {
      if (!is_reducible(dtype, op)) continue;
      for (const int num_sources : {1, 2, 3, 4, 5, 7, 8, 13}) {
        for (const std::int64_t count : {0, 1, 7, 65, 1025}) {
          const Given given(dtype, num_sources, count);
          Bytes result(given.buffers[0].size());
          std::byte* target = result.data();
          const ElementReduction reduction{dtype, op, given.scales};
          combine(reduction, given.sources, {&target, 1}, count);
          ASSERT_EQ(result, expected_of(reduction, given, count))
              << trireme::to_text(dtype) << " " << to_text(op) << " of " << num_sources << " x "
              << count;
        }
      }
    }
  }
}

TEST(Combine, WritesAllTargetsAlsoInPlaceOfSources) {
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBf16}) {
    for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
      for (const int num_sources : {2, 4, 6}) {
        constexpr std::int64_t kCount = 5001;
        Given given(dtype, num_sources, kCount);
        const Bytes expected = expected_of({dtype, ReduceOp::kSum}, given, kCount);
        Bytes other(expected.size());
        std::vector<std::byte*> targets = {other.data()};
        for (Bytes& buffer : given.buffers) targets.push_back(buffer.data());
        combine({dtype, ReduceOp::kSum}, given.sources, targets, kCount, stores);
        EXPECT_EQ(other, expected);
        for (const Bytes& buffer : given.buffers) EXPECT_EQ(buffer, expected);
      }
    }
  }
}

// What is promised, in plain words: each source times its scale, rounded; then the tree.
TEST(Combine, AScaledSumIsTheSumOfProducts) {
  constexpr std::int64_t kCount = 1003;
  for (const int num_sources : {1, 3, 6}) {
    Given given(Dtype::kF32, num_sources, kCount);
    Bytes result(given.buffers[0].size());
    std::byte* target = result.data();
    combine({Dtype::kF32, ReduceOp::kScaledSum, given.scales}, given.sources, {&target, 1}, kCount);
    for (int s = 0; s < num_sources; ++s) {
      auto* numbers = reinterpret_cast<float*>(given.buffers[s].data());
      const auto scale = static_cast<float>(given.scales[s]);
      for (std::int64_t i = 0; i < kCount; ++i) numbers[i] = scale * numbers[i];
    }
    EXPECT_EQ(result, expected_of({Dtype::kF32, ReduceOp::kSum}, given, kCount));
  }
}

// The double is rounded once; bf16 is scaled in f32, not in bf16.
TEST(Combine, ScalesInTheTypeOfTheSum) {
  const Bf16 x = to_bf16(1.0F + 0x1p-7F);
  const auto* source = reinterpret_cast<const std::byte*>(&x);
  const std::array sources = {source, source};
  const std::array scales = {1.0 + 0x1p-7, -1.0};
  Bf16 result{};
  auto* target = reinterpret_cast<std::byte*>(&result);
  combine({Dtype::kBf16, ReduceOp::kScaledSum, scales}, sources, {&target, 1}, 1);
  EXPECT_EQ(to_f32(result), 0x1p-7F + 0x1p-14F);
}

// A rounded sum of parts is that of the whole: what a subtree gives is an element.
TEST(Combine, ARoundedSumMayBeMadeInParts) {
  constexpr std::int64_t kCount = 1003;
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kPortable}) {
    const IsaLimit limit(isa);
    for (const Dtype dtype : {Dtype::kBf16, Dtype::kF16}) {
      Given given(dtype, 8, kCount);
      const ElementReduction reduction{dtype, ReduceOp::kRoundedSum};
      const Bytes expected = expected_of(reduction, given, kCount);
      EXPECT_NE(expected, expected_of({dtype, ReduceOp::kSum}, given, kCount));
      std::byte* target = given.buffers[0].data();
      std::byte* right = given.buffers[4].data();
      combine(reduction, std::span(given.sources).first(4), {&target, 1}, kCount);
      combine(reduction, std::span(given.sources).last(4), {&right, 1}, kCount);
      combine(reduction, std::array{given.sources[0], given.sources[4]}, {&target, 1}, kCount);
      EXPECT_EQ(given.buffers[0], expected) << to_string(isa);
    }
  }
}

TEST(Combine, InPlaceOfAnyOneSource) {
  for (int place = 0; place < 4; ++place) {
    constexpr std::int64_t kCount = 3000;
    Given given(Dtype::kF32, 4, kCount);
    const Bytes expected = expected_of({}, given, kCount);
    std::byte* target = given.buffers[place].data();
    combine({}, given.sources, {&target, 1}, kCount);
    EXPECT_EQ(given.buffers[place], expected);
  }
}

TEST(Combine, UnalignedToTheVector) {
  constexpr std::int64_t kCount = 2049;
  const Given given(Dtype::kF32, 3, kCount + 3);
  for (std::size_t shift : {4U, 8U, 12U}) {
    std::vector<const std::byte*> sources;
    for (const std::byte* source : given.sources) sources.push_back(source + shift);
    Bytes result((kCount + 8) * 4, std::byte{9}), expected((kCount + 8) * 4, std::byte{9});
    reference::combine({}, sources, expected.data() + shift, kCount);
    std::byte* target = result.data() + shift;
    combine({}, sources, {&target, 1}, kCount, Stores::kStreaming);
    EXPECT_EQ(result, expected) << "shifted by " << shift;
  }
}

TEST(Combine, NanWinsInMinAndMax) {
  const float nan = std::nanf("");
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    for (const auto& [a, b] : {std::pair{nan, 1.0F}, {1.0F, nan}}) {
      float result = 0;
      auto* target = reinterpret_cast<std::byte*>(&result);
      const std::array sources = {reinterpret_cast<const std::byte*>(&a),
                                  reinterpret_cast<const std::byte*>(&b)};
      combine({Dtype::kF32, op}, sources, {&target, 1}, 1);
      EXPECT_TRUE(std::isnan(result));
    }
  }
}

TEST(Combine, RefusesWhatHasNoMeaning) {
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  const auto refusal = [&](const ElementReduction& reduction) {
    try {
      combine(reduction, {&source, 1}, {&target, 1}, 0);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("none");
  };
  EXPECT_THAT(refusal({Dtype::kF32, ReduceOp::kXor}), testing::HasSubstr("of f32 by xor"));
  EXPECT_THAT(refusal({Dtype::kI64, ReduceOp::kAverage}), testing::HasSubstr("i64 by average"));
  EXPECT_THAT(refusal({Dtype::kC64, ReduceOp::kSum}), testing::HasSubstr("of c64"));
  EXPECT_THAT(refusal({Dtype::kI64, ReduceOp::kScaledSum}), testing::HasSubstr("by scaled_sum"));
  EXPECT_THAT(refusal({Dtype::kI64, ReduceOp::kRoundedSum}), testing::HasSubstr("by rounded_sum"));
  EXPECT_THAT(refusal({Dtype::kF32, ReduceOp::kScaledSum}), testing::HasSubstr("as many scales"));
  EXPECT_THROW(combine({}, {}, {&target, 1}, 0), Error);
  EXPECT_THROW(combine({}, {&source, 1}, {}, 0), Error);
}

}  // namespace
}  // namespace trireme::kernels
