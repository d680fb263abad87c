#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/models/models.h"
#include "tests/wire/endpoint/ranks.h"
#include "trireme/engine/parameters/parameter_store.h"
#include "trireme/engine/reference/run_record.h"
#include "trireme/engine/reference/serial_executor.h"
#include "trireme/engine/shard/sharded_recording.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/wire/endpoint/sim/world.h"

namespace trireme::shard::test {

inline constexpr std::uint64_t kSeed = 7;

/// What a step leaves: the loss, and gradients by name, those of split parameters by part.
struct Step {
  double loss = 0;
  std::map<std::string, at::Tensor> gradients;
};

/// A model and what its shards have in common.
struct ShardTrial {
  std::function<models::TestModel()> make;  ///< The same weights at each call.
  BatchLayout batch;
  models::TestModel test = make();
  record::Recording recording =
      record::record(test.model, test.make_batch, {.microbatch = batch.microbatch});

  std::vector<Batch> microbatches =
      make_microbatches();  ///< Here: data may come from torch's one generator.

  sharding::Sharding find(int num_shards) const {
    return sharding::find_sharding(recording.graph, {.num_shards = num_shards,
                                                     .microbatch = batch.microbatch,
                                                     .flops_per_second = 1,
                                                     .link_seconds = 0});
  }

  /// A step of any recording of the model, cut in stages of about as many nodes.
  Step run(const record::Recording& any, int num_stages = 1) const {
    const std::vector<int> cuts = layout::even_cuts(any.graph, num_stages);
    const layout::Plan plan =
        layout::make_manual_plan(any.graph, graph::graph_sha256(any.graph), cuts, batch);
    const parameters::ParameterStore store(layout::make_parameter_map(any.graph, plan), any.graph,
                                           any.tensors, {});
    reference::SerialExecutor executor(any, plan, store, kSeed);
    Step step;
    step.loss = executor.run_step(0, microbatches).total();
    for (const std::string& name : store.names()) {
      step.gradients[name] =
          reference::owner_view(store, executor.gradients().gradients(), name).clone();
    }
    return step;
  }

  /// All shards in this process.
  Step run_shards(const sharding::Sharding& sharding, int num_stages = 1) const {
    return run(make_sharded_recording(recording, sharding, {0, sharding.num_shards}, {}).recording,
               num_stages);
  }

  /// By rank: each has as many shards.
  std::vector<Step> run_ranks(const sharding::Sharding& sharding, int num_ranks) const {
    auto endpoints = transport::make_sim_world(
        num_ranks, {.seed = 1, .max_delay = std::chrono::microseconds(100)});
    std::vector<int> ranks;
    for (int rank = 0; rank < num_ranks; ++rank) ranks.push_back(rank);
    const int count = sharding.num_shards / num_ranks;
    std::vector<std::unique_ptr<ShardTrial>> trials;  // with tensors of their own
    for (int rank = 0; rank < num_ranks; ++rank) {
      trials.push_back(std::unique_ptr<ShardTrial>(new ShardTrial{make, batch}));
    }
    std::vector<Step> steps(num_ranks);
    transport::test::expect_no_errors(transport::test::run_threads(num_ranks, [&](int rank) {
      collectives::Group group(*endpoints[rank], ranks,
                               {.name = "shard", .id = 1, .deadline = std::chrono::seconds(20)});
      const ShardPeers peers{&group, {.deadline = std::chrono::seconds(20)}};
      const ShardTrial& own = *trials[rank];
      steps[rank] = own.run(
          make_sharded_recording(own.recording, sharding, {rank * count, count}, peers).recording);
    }));
    return steps;
  }

  std::vector<Batch> make_microbatches() const {
    std::vector<Batch> result;
    for (std::int64_t m = 0; m < batch.num_microbatches(); ++m) {
      result.push_back(test.make_batch(batch.microbatch, static_cast<std::uint64_t>(1000 + m)));
    }
    return result;
  }

  /// Gradients by the names of the model.
  std::map<std::string, at::Tensor> whole_gradients(const Step& step,
                                                    const sharding::Sharding& sharding) const {
    std::map<std::string, at::Tensor> whole;
    for (const graph::Parameter& parameter : recording.graph.parameters) {
      const auto split = sharding.splits.find(parameter.value);
      if (split == sharding.splits.end()) {
        const auto found = step.gradients.find(parameter.name);
        if (found != step.gradients.end()) whole[parameter.name] = found->second;
        continue;
      }
      at::Tensor gradient = at::empty_like(recording.tensors[parameter.value].detach());
      for (int s = 0; s < sharding.num_shards; ++s) {
        const std::string name = sharding::part_name(parameter.name, s, sharding.num_shards);
        put_part(step.gradients.at(name), gradient, split->second, sharding.num_shards, s);
      }
      whole[parameter.name] = gradient;
    }
    return whole;
  }
};

/// All shards in one process are near the model: sums are the same but for their order.
///
/// of_all   a gradient may be as far off by this part of the norm of all: that of a bias before a norm is 0 but for rounding.
inline void expect_near(const ShardTrial& trial, const sharding::Sharding& sharding,
                        const Step& shards, const Step& plain, double of_all = 0) {
  double squares = 0;
  for (const auto& [name, gradient] : plain.gradients) {
    squares += std::pow(gradient.norm().item<double>(), 2);
  }
  EXPECT_NEAR(shards.loss, plain.loss, 1e-5 * std::abs(plain.loss));
  const auto gradients = trial.whole_gradients(shards, sharding);
  EXPECT_EQ(gradients.size(), plain.gradients.size());
  for (const auto& [name, gradient] : plain.gradients) {
    const double difference = at::sub(gradients.at(name), gradient).norm().item<double>();
    const bool is_near = difference <= of_all * std::sqrt(squares);
    EXPECT_TRUE(is_near || reference::relative_difference(gradients.at(name), gradient) < 2e-5)
        << name << ", " << difference << " of " << std::sqrt(squares);
  }
}

/// Ranks with any power of two of shards each have the bits of one process with all of them.
inline void expect_same_bits(const ShardTrial& trial, const sharding::Sharding& sharding,
                             const Step& shards) {
  for (int num_shards = 1; num_shards < sharding.num_shards; num_shards *= 2) {
    if (sharding.num_shards % num_shards != 0) continue;
    const int num_ranks = sharding.num_shards / num_shards;
    std::size_t num_compared = 0;
    for (const Step& rank : trial.run_ranks(sharding, num_ranks)) {
      EXPECT_EQ(rank.loss, shards.loss);
      for (const auto& [name, gradient] : rank.gradients) {
        ++num_compared;
        EXPECT_TRUE(reference::same_bits(gradient, shards.gradients.at(name)))
            << name << ", " << num_ranks << " ranks";
      }
    }
    EXPECT_GE(num_compared, shards.gradients.size());
  }
}

}  // namespace trireme::shard::test
