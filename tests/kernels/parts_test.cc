#include "trireme/kernels/reduce/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/random_numbers.h"
#include "tests/kernels/reference/combine.h"
#include "trireme/error.h"
#include "trireme/kernels/isa.h"

namespace trireme::kernels {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::int64_t kCount = 1303;

Bytes real_numbers(Dtype dtype, unsigned seed) {
  const auto bytes_of = [](const auto& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    return Bytes(bytes.begin(), bytes.end());
  };
  if (dtype == Dtype::kF64) return bytes_of(random_numbers<double>(kCount, seed));
  if (dtype == Dtype::kF16) return bytes_of(random_numbers<F16>(kCount, seed, 3));
  if (dtype == Dtype::kBf16) return bytes_of(random_numbers<Bf16>(kCount, seed));
  return bytes_of(random_numbers<float>(kCount, seed));
}

/// What hosts of some ranks each have.
struct HostElements {
  std::vector<Bytes> buffers;
  std::vector<const std::byte*> sources;
  std::vector<double> scales;

  HostElements(Dtype dtype, int num_ranks) {
    for (int r = 0; r < num_ranks; ++r) buffers.push_back(real_numbers(dtype, r + 1));
    for (const Bytes& buffer : buffers) sources.push_back(buffer.data());
    for (int r = 0; r < num_ranks; ++r) scales.push_back(1.0 / (r + 3) - 0.2);
  }
};

/// In two passes: over each `per_host` ranks, and over the hosts.
Bytes in_parts(const ElementReduction& reduction, Dtype partial, const HostElements& given,
               int per_host) {
  const int num_ranks = static_cast<int>(given.sources.size());
  std::vector<Bytes> partials;
  std::vector<const std::byte*> sources;
  for (int first = 0; first < num_ranks; first += per_host) {
    Bytes& target = partials.emplace_back(kCount * size_bytes(partial));
    combine_elements({reduction.dtype, reduction.op, reduction.scales.subspan(first, per_host)},
                     partial, std::span(given.sources).subspan(first, per_host), target.data(),
                     kCount);
  }
  for (const Bytes& bytes : partials) sources.push_back(bytes.data());
  Bytes result(kCount * size_bytes(reduction.dtype));
  combine_partials(reduction, partial, num_ranks, sources, result.data(), kCount);
  return result;
}

constexpr ReduceOp kRealOps[] = {ReduceOp::kSum,       ReduceOp::kAverage, ReduceOp::kProduct,
                                 ReduceOp::kMin,       ReduceOp::kMax,     ReduceOp::kScaledSum,
                                 ReduceOp::kRoundedSum};

// Hosts of 2, 4 and 8 ranks, up to more than one loop reads: nothing is lost between the passes.
TEST(Parts, OfSubtreesHaveTheBitsOfTheWhole) {
  for (const Isa isa : {Isa::kAvx512, Isa::kPortable}) {
    const IsaLimit limit(isa);
    for (const Dtype dtype : {Dtype::kF64, Dtype::kF32, Dtype::kF16, Dtype::kBf16}) {
      for (const auto& [hosts, per_host] : {std::pair{2, 2}, {3, 4}, {5, 8}, {6, 2}}) {
        const HostElements given(dtype, hosts * per_host);
        for (const ReduceOp op : kRealOps) {
          const ElementReduction reduction{dtype, op, given.scales};
          Bytes expected(kCount * size_bytes(dtype));
          reference::combine(reduction, given.sources, expected.data(), kCount);
          EXPECT_EQ(in_parts(reduction, partial_dtype(dtype, op), given, per_host), expected)
              << trireme::to_text(dtype) << " " << to_text(op) << " of " << hosts << " hosts of "
              << per_host;
        }
      }
    }
  }
}

// Elements as partial results: each is rounded, and the average divides once, at the end.
TEST(Parts, MayBeRoundedToElements) {
  const HostElements given(Dtype::kBf16, 4);
  const Bytes rounded =
      in_parts({Dtype::kBf16, ReduceOp::kAverage, given.scales}, Dtype::kBf16, given, 2);
  const auto number = [](const Bytes& bytes, std::int64_t i) {
    return to_f32(reinterpret_cast<const Bf16*>(bytes.data())[i]);
  };
  int num_different = 0;
  for (std::int64_t i = 0; i < kCount; ++i) {
    const auto& x = given.buffers;
    const float left = to_f32(to_bf16(number(x[0], i) + number(x[1], i)));
    const float right = to_f32(to_bf16(number(x[2], i) + number(x[3], i)));
    ASSERT_EQ(number(rounded, i), to_f32(to_bf16((left + right) / 4))) << i;
  }
  const Bytes exact =
      in_parts({Dtype::kBf16, ReduceOp::kAverage, given.scales}, Dtype::kF32, given, 2);
  for (std::int64_t i = 0; i < kCount; ++i) num_different += number(exact, i) != number(rounded, i);
  EXPECT_GT(num_different, 0);
}

TEST(Parts, AreOfOneOfTwoTypes) {
  EXPECT_EQ(partial_dtype(Dtype::kF16, ReduceOp::kAverage), Dtype::kF32);
  EXPECT_EQ(partial_dtype(Dtype::kBf16, ReduceOp::kMax), Dtype::kBf16);
  EXPECT_EQ(partial_dtype(Dtype::kBf16, ReduceOp::kRoundedSum), Dtype::kBf16);
  EXPECT_EQ(partial_dtype(Dtype::kF64, ReduceOp::kSum), Dtype::kF64);
  EXPECT_EQ(partial_dtype(Dtype::kI8, ReduceOp::kSum), Dtype::kI8);
  const std::byte* source = nullptr;
  const auto refusal = [&](const ElementReduction& reduction, Dtype partial) {
    try {
      combine_elements(reduction, partial, {&source, 1}, nullptr, 0);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("none");
  };
  EXPECT_THAT(refusal({Dtype::kF32}, Dtype::kF64), testing::HasSubstr("partial results of f64"));
  EXPECT_THAT(refusal({Dtype::kBf16, ReduceOp::kMax}, Dtype::kF32),
              testing::HasSubstr("partial results of f32"));
  EXPECT_THAT(refusal({Dtype::kBf16, ReduceOp::kScaledSum}, Dtype::kF32),
              testing::HasSubstr("as many scales"));
  EXPECT_THROW(combine_partials({}, Dtype::kF32, 1, {}, nullptr, 0), Error);
}

}  // namespace
}  // namespace trireme::kernels
