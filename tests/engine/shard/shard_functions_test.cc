#include "trireme/engine/shard/shard_functions.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "trireme/engine/shard/sharded_recording.h"
#include "trireme/error.h"

namespace trireme::shard {
namespace {

at::Tensor numbers(const std::vector<float>& values) { return torch::tensor(values); }

TEST(SumOverShards, AddsByTheTree) {
  // (1e8 + 1) + (-1e8 + 1): from left to right it would be 1.
  const at::Tensor sum =
      sum_over_shards({numbers({1e8F}), numbers({1}), numbers({-1e8F}), numbers({1})}, {});
  EXPECT_EQ(sum.item<float>(), 0);
}

TEST(SumOverShards, RoundsHalvesAfterEachMerge) {
  const auto half = [](float value) { return numbers({value}).to(torch::kBFloat16); };
  // 256 + 1 is 256 in bf16; kept in f32 the sum would be 258.
  const at::Tensor sum = sum_over_shards({half(256), half(1), half(0), half(1)}, {});
  EXPECT_EQ(sum.item<float>(), 256);
}

TEST(SumOverShards, TakesPartsThatLieOtherwise) {
  const at::Tensor a = torch::arange(6.0).view({2, 3}), b = torch::arange(6.0).view({3, 2}).t();
  EXPECT_TRUE(at::equal(sum_over_shards({a, b}, {}), a + b));
  EXPECT_TRUE(at::equal(sum_over_shards({b, b}, {}), b + b));
}

TEST(SumOverShards, BackwardGivesEachTheWhole) {
  const auto functions = make_shard_functions(2, {});
  TensorList partial = {numbers({1, 2}).requires_grad_(), numbers({3, 4}).requires_grad_()};
  const TensorList sum = functions.at(std::string(sharding::kSumOfShards))->call(partial);
  (sum.front() * numbers({5, 6})).sum().backward();
  for (const at::Tensor& part : partial) EXPECT_TRUE(at::equal(part.grad(), numbers({5, 6})));
}

TEST(GivenToShards, BackwardSumsThem) {
  const auto functions = make_shard_functions(2, {});
  const at::Tensor whole = numbers({1, 2}).requires_grad_();
  const TensorList given = functions.at(std::string(sharding::kGivenToShards))->call({whole});
  ASSERT_EQ(given.size(), 2U);
  (given[0] * numbers({5, 6}) + given[1] * numbers({7, 8})).sum().backward();
  EXPECT_TRUE(at::equal(whole.grad(), numbers({12, 14})));
  const at::Tensor again = numbers({1, 2}).requires_grad_();
  functions.at(std::string(sharding::kGivenToShards))->call({again})[1].sum().backward();
  EXPECT_TRUE(at::equal(again.grad(), numbers({1, 1}))) << "nothing from the other shard";
}

TEST(PartsOfTensors, AreThoseOfTheirBlocks) {
  const at::Tensor whole = torch::arange(12.0);
  EXPECT_TRUE(at::equal(part_of(whole, {0, 1}, 2, 1), torch::arange(6.0, 12.0)));
  EXPECT_TRUE(at::equal(part_of(whole, {0, 3}, 2, 1), numbers({2, 3, 6, 7, 10, 11}).to(whole)));
  const at::Tensor copy = torch::zeros({12});
  for (int s = 0; s < 2; ++s) put_part(part_of(whole, {0, 3}, 2, s), copy, {0, 3}, 2, s);
  EXPECT_TRUE(at::equal(copy, whole));
  EXPECT_THROW(part_of(whole, {0, 3}, 3, 0), Error);
  EXPECT_THROW(part_of(whole, {1, 1}, 2, 0), Error);
  EXPECT_THROW(part_of(whole, {0, 1}, 2, 2), Error);
}

}  // namespace
}  // namespace trireme::shard
