#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "tests/engine/parameters/optimizers/updates.h"
#include "tests/models/models.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::parameters {
namespace {

/// The wide model in a store for replicas that share the optimizer's state.
struct Wide {
  models::TestModel test = models::make("wide");
  record::Recording recording = record::record(test.model, test.make_batch, graph::Mode::kTrain);
  layout::Plan plan = layout::make_manual_plan(
      recording.graph, graph::graph_sha256(recording.graph), {}, {16, 1, 16});
  std::unique_ptr<ParameterStore> store;
  std::unique_ptr<GradientBuffers> gradients;

  explicit Wide(int replicas) {
    layout::set_replicas(plan, replicas);
    plan.sharded_state = true;
    store = std::make_unique<ParameterStore>(layout::make_parameter_map(recording.graph, plan),
                                             recording.graph, recording.tensors,
                                             ParameterStore::Options{});
    gradients = std::make_unique<GradientBuffers>(store->make_gradients());
  }

  void fill_gradients(int step) {
    auto random = at::make_generator<at::CPUGeneratorImpl>(step);
    for (at::Tensor& flat : gradients->all()) flat.normal_(0, 1, random);
  }
};

/// Words that threads have in parts.
class Union {
 public:
  explicit Union(int num_threads) : barrier_(num_threads) {}

  /// The `round`-th of each thread.
  void unite(int round, std::span<std::uint64_t> words) {
    {
      const std::lock_guard lock(mutex_);
      std::vector<std::uint64_t>& united = rounds_[round];
      united.resize(words.size());
      for (std::size_t i = 0; i < words.size(); ++i) united[i] |= words[i];
    }
    barrier_.arrive_and_wait();
    const std::lock_guard lock(mutex_);
    std::ranges::copy(rounds_[round], words.begin());
  }

 private:
  std::barrier<> barrier_;
  std::mutex mutex_;
  std::map<int, std::vector<std::uint64_t>> rounds_;
};

/// Elements of state.
std::int64_t kept_elements(const Optimizer& optimizer) {
  std::int64_t kept = 0;
  for (const auto& [name, kinds] : optimizer.state()) {
    for (const auto& [kind, tensor] : kinds) kept += tensor.numel() > 1 ? tensor.numel() : 0;
  }
  return kept;
}

/// Five updates of one replica; `kept` grows by its state.
void update_shards(int replica, Wide& wide, Optimizer& optimizer, Union& unite,
                   const Wide& expected, std::atomic<std::int64_t>& kept) {
  const Part part{replica, [&unite, round = 0](std::span<std::uint64_t> words) mutable {
                    unite.unite(round++, words);
                  }};
  for (int step = 0; step < 5; ++step) {
    wide.fill_gradients(step);
    apply(optimizer, *wide.store, *wide.gradients, kAll, at(0.01), part);
  }
  for (std::size_t b = 0; b < wide.store->map().buckets.size(); ++b) {
    const auto bucket = static_cast<int>(b);
    const layout::Shard shard = part_of(wide.store->map().buckets[b], part);
    const auto mine = [&](const Wide& of) {
      return of.store->flat_values(bucket).narrow(0, shard.begin_elements,
                                                  shard.end_elements - shard.begin_elements);
    };
    EXPECT_TRUE(same_bits(mine(wide), mine(expected))) << "replica " << replica;
  }
  kept += kept_elements(optimizer);
}

TEST(Optimizers, ThatShareStateUpdateAsOneDoes) {
  constexpr int kReplicas = 4;
  const std::function<std::unique_ptr<Optimizer>()> makers[] = {
      [] { return make_sgd({.momentum = 0.9}); }, [] { return make_adamw({.weight_decay = 0.1}); },
      [] { return make_lamb({}); },
      [] { return make_lars({.momentum = 0.9, .weight_decay = 0.1}); },
      [] { return make_novograd({.weight_decay = 0.1}); }};
  for (const auto& make_plain : makers) {
    Wide one(kReplicas);
    const auto make = [&make_plain] {
      auto optimizer = make_plain();
      optimizer->set_average(0.9);
      return optimizer;
    };
    const auto whole = make();
    for (int step = 0; step < 5; ++step) {
      one.fill_gradients(step);
      apply(*whole, *one.store, *one.gradients, kAll, at(0.01));
    }
    Union unite(kReplicas);
    std::atomic<std::int64_t> kept = 0;
    std::vector<std::unique_ptr<Wide>> replicas;
    for (int r = 0; r < kReplicas; ++r) replicas.push_back(std::make_unique<Wide>(kReplicas));
    std::vector<std::jthread> threads;
    for (int r = 0; r < kReplicas; ++r) {
      threads.emplace_back([&, r] {
        const auto optimizer = make();
        update_shards(r, *replicas[r], *optimizer, unite, one, kept);
      });
    }
    threads.clear();
    EXPECT_EQ(kept, kept_elements(*whole));
  }
}

TEST(Optimizers, ThatCannotShareStateSaySo) {
  const Wide wide(2);
  const Part part{.replica = 0, .unite = [](std::span<std::uint64_t>) {}};
  EXPECT_NO_THROW(check_parameters(*make_lamb({}), *wide.store, part));
  EXPECT_THROW(check_parameters(*make_adafactor({}), *wide.store, part), Error);
  EXPECT_THROW(check_parameters(*make_own(), *wide.store, part), Error);
}

TEST(SquareNorms, OfReplicasThatShareStateAreOfTheWhole) {
  Wide wide(4);
  wide.fill_gradients(3);
  std::vector<std::uint64_t> united;
  const auto gather = [&united](std::span<std::uint64_t> words) {
    united.resize(words.size());
    for (std::size_t i = 0; i < words.size(); ++i) united[i] |= words[i];
  };
  for (int r = 0; r < 4; ++r) square_norms(*wide.store, *wide.gradients, kAll, {r, gather});
  const auto take = [&united](std::span<std::uint64_t> words) {
    std::ranges::copy(united, words.begin());
  };
  EXPECT_EQ(square_norms(*wide.store, *wide.gradients, kAll, {0, take}),
            square_norms(*wide.store, *wide.gradients, kAll));
}

}  // namespace
}  // namespace trireme::parameters
