#pragma once

#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/plans/random_models.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/partition/candidate.h"
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
/// orders of magnitude; 1 to 4 machines; memory caps that bind or not.
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
  one.model.profile.links = random_links(random);
  one.topology = layout::testing::random_topology(random, one.num_stages, 4);
  one.options.batch = {1 + pick(12), 1, 1};
  one.options.may_choose_owners = false;     // `exhaustive` does not.
  one.options.recompute = Recompute::kNone;  // Nor that.
  return one;
}

/// The best score of all cuts and schedules by the simulator; of those with `required` among them.
inline Score exhaustive(const Problem& problem, const Goal& goal) {
  std::vector<int> places, cuts;
  const std::vector<bool> allowed = graph::allowed_cuts(problem.recorded);
  for (int c = 1; c + 1 < static_cast<int>(allowed.size()); ++c) {
    if (allowed[c]) places.push_back(c);
  }
  Score best{std::numeric_limits<std::int64_t>::max(), 0, 0, 0};
  for (const std::string& schedule : schedule::schedule_names()) {
    const Setting setting{schedule, {}, problem.recorded};
    const auto visit = [&](const auto& self, std::size_t place) -> void {
      if (static_cast<int>(cuts.size()) + 1 == problem.num_stages) {
        best = std::min(best, score(problem, evaluate(problem, setting, cuts), goal));
        return;
      }
      for (; place < places.size(); ++place) {
        cuts.push_back(places[place]);
        self(self, place + 1);
        cuts.pop_back();
      }
    };
    visit(visit, 0);
  }
  return best;
}

/// The best over both schedules with moves alone.
inline Score climb(const Problem& problem, const Goal& goal) {
  std::optional<Score> best;
  for (const std::string& schedule : schedule::schedule_names()) {
    const Setting setting{schedule, {}, problem.recorded};
    const auto found = Search(problem, setting, {.exhaustive = 0}).find(goal);
    if (found && (!best || found->score < *best)) best = found->score;
  }
  return *best;
}

/// Whether the graph has enough places for the cuts.
inline bool has_plans(const SearchCase& one) {
  const std::vector<bool> allowed = graph::allowed_cuts(one.model.graph);
  return std::count(allowed.begin(), allowed.end(), true) + 1 >= one.num_stages;
}

}  // namespace trireme::partition::testing
