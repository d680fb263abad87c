#include "trireme/engine/parameters/sharded_bucket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>

#include "trireme/engine/memory/process_memory.h"

namespace trireme::parameters {
namespace {

/// Two parameters of 2 x 8 and 3 elements, of which replica 0 has the first row of one.
layout::Bucket small_bucket() {
  return {.stage = 0,
          .num_elements = 32,
          .slots = {{"a", 0, 0, 16, 0}, {"b", 0, 16, 3, 1}},
          .shards = {{0, 0, 8}, {1, 8, 32}}};
}

std::string complaint_about(const at::Tensor& tensor) {
  try {
    tensor.sum();
  } catch (const c10::Error& error) {
    return error.what();
  }
  return "";
}

/// Both replicas' shards of one bucket, gathered by hand.
struct TwoReplicas {
  layout::Bucket bucket = small_bucket();
  at::Tensor a = torch::arange(16, at::kFloat).view({2, 8});
  at::Tensor b = torch::arange(3, at::kFloat) + 100;
  ShardedBucket first{bucket, 0, at::kFloat}, second{bucket, 1, at::kFloat};
  at::Tensor shown_a = first.add(bucket.slots[0], a), shown_b = first.add(bucket.slots[1], b);

  TwoReplicas() {
    second.add(bucket.slots[0], a);
    second.add(bucket.slots[1], b);
  }

  void gather() {
    const at::Tensor& whole = first.make_whole();
    whole.narrow(0, 0, 8).copy_(first.shard());
    whole.narrow(0, 8, 24).copy_(second.shard());
    first.show();
  }
};

TEST(ShardedBucket, KeepsItsShardAndShowsTheWholeForAWhile) {
  TwoReplicas replicas;
  EXPECT_TRUE(torch::equal(replicas.first.shard(), replicas.a[0]));
  EXPECT_TRUE(torch::equal(replicas.second.shard().narrow(0, 8, 3), replicas.b));
  EXPECT_THAT(complaint_about(replicas.shown_a), testing::HasSubstr("are in shards"));
  EXPECT_FALSE(has_memory(replicas.shown_a));
  for (int time = 0; time < 2; ++time) {
    replicas.gather();
    EXPECT_TRUE(has_memory(replicas.shown_a));
    EXPECT_TRUE(torch::equal(replicas.shown_a, replicas.a));
    EXPECT_TRUE(torch::equal(replicas.shown_b, replicas.b));
    replicas.first.drop();
    EXPECT_THAT(complaint_about(replicas.shown_b), testing::HasSubstr("are in shards"));
  }
}

TEST(ShardedBucket, HalfGatheredValuesAreNotShown) {
  TwoReplicas replicas;
  replicas.first.make_whole();
  EXPECT_THAT(complaint_about(replicas.shown_a), testing::HasSubstr("are in shards"));
}

// What torch's autograd saved in a forward is read again after the values were away.
TEST(ShardedBucket, ViewsAndSavedTensorsSeeTheValuesAgain) {
  TwoReplicas replicas;
  at::Tensor parameter = torch::zeros({2, 8}, at::requires_grad());
  parameter.set_data(replicas.shown_a);
  const at::Tensor view = replicas.shown_a.t();
  const at::Tensor x = torch::ones({1, 8}, at::requires_grad());
  replicas.gather();
  const at::Tensor y = at::linear(x, parameter).sum();
  replicas.first.drop();
  EXPECT_THAT(complaint_about(view), testing::HasSubstr("are in shards"));
  EXPECT_THROW(y.backward({}, /*retain_graph=*/true), c10::Error);
  replicas.gather();
  EXPECT_TRUE(torch::equal(view, replicas.a.t()));
  y.backward();
  EXPECT_TRUE(torch::equal(x.grad()[0], replicas.a.sum(0)));
  EXPECT_TRUE(torch::equal(parameter.grad(), torch::ones({2, 8})));
}

TEST(ShardedBucket, KeepsStridesAndGivesMemoryBack) {
  memory::install_block_allocator();
  constexpr std::int64_t kElements = 1 << 20;
  const layout::Bucket bucket{.num_elements = kElements,
                              .slots = {{"a", 0, 0, kElements, 0}},
                              .shards = {{0, 0, 0}, {1, 0, kElements}}};
  const at::Tensor value = torch::arange(kElements, at::kFloat).view({1024, 1024}).t();
  ShardedBucket none(bucket, 0, at::kFloat), all(bucket, 1, at::kFloat);
  const at::Tensor shown = none.add(bucket.slots[0], value);
  all.add(bucket.slots[0], value);
  EXPECT_EQ(shown.strides(), value.strides());
  EXPECT_EQ(none.shard().numel(), 0);
  const std::int64_t before = memory::memory_use().live_bytes;
  none.make_whole().copy_(all.shard());
  none.show();
  EXPECT_EQ(memory::memory_use().live_bytes - before, kElements * 4);
  EXPECT_TRUE(torch::equal(shown, value));
  none.drop();
  EXPECT_EQ(memory::memory_use().live_bytes, before);
}

// A module may be looked at after its training.
TEST(ShardedBucket, ATensorThatOutlivesItCannotBeRead) {
  at::Tensor shown;
  {
    TwoReplicas replicas;
    replicas.gather();
    shown = replicas.shown_a;
  }
  EXPECT_THAT(complaint_about(shown), testing::HasSubstr("are in shards"));
  shown = torch::Tensor();
}

}  // namespace
}  // namespace trireme::parameters
