#include "trireme/engine/train/replica_buffers.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <mutex>

#include "tests/engine/train/layouts.h"
#include "trireme/model.h"

namespace trireme::train {
namespace {

namespace nn = torch::nn;
using testing::HasSubstr;

/// Adds up what it sees and counts its calls, in the forward; `flag` is no number.
struct Watching : nn::Module {
  nn::Linear inner{nullptr};
  torch::Tensor seen, calls, flag;

  Watching() {
    inner = register_module("inner", nn::Linear(3, 1));
    seen = register_buffer("seen", torch::zeros({3}));
    calls = register_buffer("calls", torch::zeros({2}, torch::kLong));
    flag = register_buffer("flag", torch::zeros({1}, torch::kBool));
  }

  Losses forward(const Batch& batch) {
    {
      const torch::NoGradGuard no_grad;
      seen.add_(batch["x"].sum(0));
      calls.mul_(1).add_(1);
      flag.logical_or_(batch["x"].sum() > -1e9);
    }
    return {mean_loss(inner(batch["x"]).square().mean())};
  }
};

constexpr std::int64_t kSamples = 16;

MakeWorkload watching() {
  return [] {
    const auto x = torch::arange(kSamples * 3, torch::kFloat).square().view({kSamples, 3}) / 8;
    return Workload{make_model(std::make_shared<Watching>()), tensor_source({{"x", x}}), nullptr};
  };
}

const ReplicaPolicies kAll = {
    {"seen", ReplicaPolicy::kSum}, {"calls", ReplicaPolicy::kSum}, {"flag", ReplicaPolicy::kFirst}};

/// Buffers after `steps` steps of 16 samples, eight microbatches, the same on all replicas.
std::map<std::string, at::Tensor> trained(int replicas, const ReplicaPolicies& policies,
                                          int steps = 1) {
  std::mutex mutex;
  std::map<std::string, at::Tensor> first;
  run_ranks(replicas, [&](const collectives::World& world) {
    const Workload workload = construct(watching(), 3);
    const auto recorded =
        record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                       graph::Mode::kTrain);
    layout::Plan plan = layout::make_manual_plan(
        recorded.graph, graph::graph_sha256(recorded.graph), {}, {kSamples, 2, replicas});
    layout::set_replicas(plan, replicas);
    RankSession session(world, workload, recorded, plan, {.buffers = policies});
    for (int step = 0; step < steps; ++step) session.step();
    const std::scoped_lock lock(mutex);
    for (const NamedTensor& buffer : workload.model.buffers) {
      const auto [known, is_new] = first.emplace(buffer.name, buffer.tensor.clone());
      EXPECT_TRUE(at::equal(known->second, buffer.tensor)) << buffer.name << " differs";
    }
  });
  return first;
}

ReplicaPolicies with(const std::string& buffer, ReplicaPolicy policy) {
  ReplicaPolicies policies = kAll;
  policies[buffer] = policy;
  return policies;
}

// A second step would count what came before it once for each replica.
TEST(ReplicaBuffers, SumsAreOfChanges) {
  const auto alone = trained(1, {}, 2);
  EXPECT_EQ(alone.at("calls")[0].item<std::int64_t>(), 16);
  for (const int replicas : {2, 4}) {
    const auto together = trained(replicas, kAll, 2);
    EXPECT_TRUE(at::equal(together.at("calls"), alone.at("calls")));
    EXPECT_TRUE(at::equal(together.at("seen"), alone.at("seen"))) << "eighths add exactly";
    EXPECT_TRUE(together.at("flag").item<bool>());
  }
}

TEST(ReplicaBuffers, OthersTakeTheMeanOrTheFirst) {
  EXPECT_EQ(trained(2, with("calls", ReplicaPolicy::kFirst)).at("calls")[0].item<std::int64_t>(),
            4);
  const at::Tensor whole = trained(2, kAll).at("seen");
  EXPECT_TRUE(at::equal(trained(2, with("seen", ReplicaPolicy::kAverage)).at("seen"), whole / 2));
  const at::Tensor first = trained(2, with("seen", ReplicaPolicy::kFirst)).at("seen");
  EXPECT_FALSE(at::equal(first, whole / 2));
}

std::string refusal(int replicas, const ReplicaPolicies& policies) {
  try {
    trained(replicas, policies);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "taken";
}

TEST(ReplicaBuffers, RefusesWhatHasNoMeaning) {
  EXPECT_THAT(refusal(2, {{"seen", ReplicaPolicy::kSum}, {"flag", ReplicaPolicy::kFirst}}),
              HasSubstr("--buffer calls=first"));
  EXPECT_THAT(refusal(2, with("calls", ReplicaPolicy::kAverage)), HasSubstr("dtype i64"));
  EXPECT_THAT(refusal(2, with("flag", ReplicaPolicy::kSum)), HasSubstr("dtype bool"));
  EXPECT_THAT(refusal(1, {{"inner", ReplicaPolicy::kSum}}), HasSubstr("'seen', 'calls', 'flag'"));
}

TEST(ReplicaBuffers, ARankWritesThoseOfOneReplica) {
  const Workload workload = construct(watching(), 3);
  const auto recorded = record::record(
      workload.model, BatchReader(workload.training, workload.model).maker(), graph::Mode::kTrain);
  EXPECT_NO_THROW(check_buffers(recorded.graph, kAll, {"train", {1, 2, 1}, {0, 1}}));
  try {
    check_buffers(recorded.graph, kAll, {"train", {1, 2, 1}, {0, 0}});
    FAIL() << "two replicas would write one buffer";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("buffer 'seen' is written by forwards, and some ranks"));
  }
}

TEST(ReplicaPolicies, AreSaidByName) {
  EXPECT_EQ(parse_replica_policies({"a.b=sum", "c=d=first"}),
            (ReplicaPolicies{{"a.b", ReplicaPolicy::kSum}, {"c=d", ReplicaPolicy::kFirst}}));
  for (const std::vector<std::string>& bad : std::vector<std::vector<std::string>>{
           {"a"}, {"a=last"}, {"=sum"}, {"a="}, {"a=sum", "a=first"}}) {
    EXPECT_THROW(parse_replica_policies(bad), Error) << bad[0];
  }
  EXPECT_EQ(facts_of({.buffers = parse_replica_policies({"b=sum", "a=first"})}).at("buffers"),
            "a=first b=sum");
  EXPECT_FALSE(facts_of({}).contains("buffers"));
}

}  // namespace
}  // namespace trireme::train
