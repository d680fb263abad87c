#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/plan/partition/exhaustive.h"
#include "tests/plans/random_models.h"
#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/partition/search.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::partition::testing {

/// A problem and all that it refers to.
struct SearchCase {
  layout::testing::Model model;
  topology::Topology topology;
  PartitionOptions options;
  int num_stages = 1;

  Problem problem() const {
    return {model.graph, model.profile, topology, options, graph::graph_sha256(model.graph),
            num_stages};
  }
};

/// Links of 1 to 400 Gb/s, host links at least as fast as those of the network; us per byte.
inline std::vector<profile::LinkTable> random_links(std::mt19937& random) {
  constexpr double kSpeeds[] = {400, 100, 40, 10, 1};
  const auto table = [](profile::LinkKind kind, double gb_per_s, double latency_us) {
    const double us = 1e6 * 8e-3 / gb_per_s;  // Of 1 MB.
    return profile::LinkTable{
        kind, {{0, latency_us, latency_us}, {1'000'000, latency_us + us, latency_us + us}}};
  };
  const auto host = random() % 5, network = host + random() % (5 - host);
  return {table(profile::LinkKind::kHost, kSpeeds[host], 2),
          table(profile::LinkKind::kNetwork, kSpeeds[network], 20)};
}

/// Chains, or graphs with branches, views and shared parameters; times and widths spread over
/// orders of magnitude; 1 to 4 machines; one replica or two.
inline SearchCase random_search_case(std::mt19937& random, int max_nodes) {
  const auto pick = [&random](int count) { return static_cast<int>(random() % count); };
  std::lognormal_distribution<double> times(4, 1.2), widths(9, 2);
  SearchCase one;
  const int num_nodes = 5 + pick(max_nodes - 4);
  one.num_stages = 2 + pick(3);
  if (pick(2) == 0) {
    std::vector<layout::testing::ChainNode> nodes(num_nodes);
    for (auto& node : nodes) {
      node = {times(random), times(random), times(random),
              1 + static_cast<std::int64_t>(widths(random)), 1 + pick(1000)};
    }
    one.model = layout::testing::make_chain(nodes);
  } else {
    one.model = layout::testing::random_model(random, num_nodes);
    for (auto& cost : one.model.profile.costs) {
      cost.forward_us = times(random) / 10;
      cost.input_us = times(random) / 10;
    }
  }
  if (pick(2) == 0) one.model.profile.step.read_us = times(random) / 10;
  one.model.profile.links = random_links(random);
  one.options.replicas = 1 + pick(2);
  one.topology = layout::testing::random_topology(random, one.num_stages * one.options.replicas, 4);
  one.options.batch = {one.options.replicas * (1 + pick(12)), 1, one.options.replicas};
  one.options.may_copy = one.options.may_reorder = false;
  one.options.stages = one.num_stages;
  one.options.may_choose_owners = false;  // `exhaustive` does not.
  one.options.recompute = Recompute::kNone;
  return one;
}

/// The best over all schedules with moves alone.
inline Score climb(const Problem& problem, const Goal& goal) {
  std::optional<Score> best;
  for (const std::string& schedule : schedule::schedule_names()) {
    const Setting setting{schedule, {}, problem.recorded};
    const auto found = Search(problem, setting, {.exhaustive = 0}).find(goal);
    if (found && (!best || found->score < *best)) best = found->score;
  }
  return *best;
}

/// Half of the problems get a cap of memory, of a part of what the fastest plan takes that keeps all.
///
/// all   of the same problem.
inline void cap_memory(std::mt19937& random, SearchCase& one, Exhaustive& all) {
  if (random() % 2 == 0) return;
  const Score free = all.best({});
  one.options.device_memory_bytes =
      static_cast<std::int64_t>(free.secondary * (0.6 + 0.05 * static_cast<double>(random() % 9)));
}

/// How far what is found is from the best there is.
struct Gaps {
  int num_cases = 0, num_refused = 0, num_wrongly_refused = 0;
  double sum = 0, worst = 0;

  void add(double found, double best) {
    const double gap = best > 0 ? std::max(found / best - 1, 0.0) : 0;
    ++num_cases;
    sum += gap;
    worst = std::max(worst, gap);
  }
  double mean() const { return num_cases > 0 ? sum / num_cases : 0; }
};

/// Of the plan that `partition` gives, or its refusal; what it decides beside cuts, schedule and stages that recompute may
/// make it better than the best of these.
///
/// best   of all there are.
inline void add_planned(const SearchCase& one, const Score& best, Gaps& gaps) {
  try {
    const layout::Plan plan =
        partition(one.model.graph, one.model.profile, one.topology, one.options);
    gaps.add(plan.prediction->step_ms * 1000, best.excess_bytes > 0 ? 0 : best.primary);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kResourceExhausted) throw;
    ++gaps.num_refused;
    gaps.num_wrongly_refused += best.excess_bytes <= 0 ? 1 : 0;
  }
}

/// Likewise of what moves alone find.
inline void add_moved(const SearchCase& one, const Score& best, Gaps& gaps) {
  const Score found = climb(one.problem(), {});
  if (found.excess_bytes <= 0) return gaps.add(found.primary, best.primary);
  ++gaps.num_refused;
  gaps.num_wrongly_refused += best.excess_bytes <= 0 ? 1 : 0;
}

/// Whether the graph has enough places for the cuts.
inline bool has_plans(const SearchCase& one) {
  const std::vector<bool> allowed = graph::allowed_cuts(one.model.graph);
  return std::count(allowed.begin(), allowed.end(), true) + 1 >= one.num_stages;
}

}  // namespace trireme::partition::testing
