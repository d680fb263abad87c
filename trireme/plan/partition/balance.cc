#include "trireme/plan/partition/balance.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/partition/tree_balance.h"

namespace trireme::partition {
namespace {

/// Where stages may begin: with node 0 and at every allowed cut.
std::vector<int> places_of(const graph::Graph& graph) {
  const std::vector<bool> allowed = graph::allowed_cuts(graph);
  std::vector<int> places = {0};
  for (std::size_t c = 0; c < allowed.size(); ++c) {
    if (allowed[c]) places.push_back(static_cast<int>(c));
  }
  return places;
}

/// Of nodes between two places, by place.
std::vector<double> sums_between(const std::vector<int>& places, const std::vector<double>& nodes) {
  std::vector<double> sums;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto end = i + 1 < places.size() ? nodes.begin() + places[i + 1] : nodes.end();
    sums.push_back(std::accumulate(nodes.begin() + places[i], end, 0.0));
  }
  return sums;
}

/// By node: elements of parameters that no node before it uses.
std::vector<double> parameters_of(const graph::Graph& graph) {
  std::vector<bool> is_used(graph.values.size(), false);
  std::vector<double> elements;
  for (const graph::Node& node : graph.nodes) {
    double sum = 0;
    for (const graph::ValueId id : graph::input_values(node)) {
      if (graph.values[id].source != graph::ValueSource::kParameter || is_used[id]) continue;
      is_used[id] = true;
      sum += static_cast<double>(graph::num_elements_at(graph.values[id], 0));
    }
    elements.push_back(sum);
  }
  return elements;
}

/// By node: what it makes, for a microbatch.
std::vector<double> made_bytes(const graph::Graph& graph, std::int64_t microbatch) {
  std::vector<double> bytes;
  for (const graph::Node& node : graph.nodes) {
    double sum = 0;
    for (const graph::ValueId id : node.outputs) {
      if (id < 0 || graph.values[id].producer != node.id) continue;
      sum += static_cast<double>(graph::bytes_at(graph.values[id], microbatch));
    }
    bytes.push_back(sum);
  }
  return bytes;
}

/// Parts of the whole; 0 where that is nothing.
std::vector<double> parts(std::vector<double> values) {
  const double whole = std::accumulate(values.begin(), values.end(), 0.0);
  for (double& value : values) value = whole > 0 ? value / whole : 0;
  return values;
}

WeighedModules weighed_modules(const graph::Graph& graph, const profile::Profile& profile,
                               const std::vector<int>& places, Objective objective) {
  constexpr double kBytesForSpeed = 0.2, kBytesForMemory = 0.8, kBytesOfElement = 4;
  const double share = objective == Objective::kMemory ? kBytesForMemory : kBytesForSpeed;
  std::vector<double> bytes = made_bytes(graph, profile.microbatch), times;
  const std::vector<double> elements = parameters_of(graph);
  for (std::size_t p = 0; p < bytes.size(); ++p) bytes[p] += kBytesOfElement * elements[p];
  for (const profile::NodeTime& time : profile::node_times(profile, graph)) {
    times.push_back(time.forward_us + time.backward_us());
  }
  const std::vector<double> byte_parts = parts(sums_between(places, bytes));
  const std::vector<double> time_parts = parts(sums_between(places, times));
  WeighedModules tree;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::string& name = graph.nodes[places[i]].name;
    const std::size_t slash = name.find('/');
    tree.modules.push_back(slash == std::string::npos ? "" : name.substr(0, slash));
    tree.weights.push_back(share * byte_parts[i] + (1 - share) * time_parts[i]);
  }
  return tree;
}

/// Runs filled in order, each with as many elements as keep its sum within `most`, one at least; later ones get one each.
std::vector<int> filled(std::span<const double> weights, int num_runs, double most) {
  std::vector<int> begins;
  const auto size = static_cast<int>(weights.size());
  int at = 0;
  for (int r = 1; r < num_runs; ++r) {
    double sum = weights[at++];
    while (at < size - (num_runs - r) && sum + weights[at] <= most) sum += weights[at++];
    begins.push_back(at);
  }
  return begins;
}

}  // namespace

std::vector<int> fill_evenly(std::span<const double> weights, int num_runs) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto fits = [&](double most) {
    const std::vector<int> begins = filled(weights, num_runs, most);
    const auto last = begins.empty() ? weights.begin() : weights.begin() + begins.back();
    return std::accumulate(last, weights.end(), 0.0) <= most;
  };
  double low = *std::ranges::max_element(weights), high = std::max(total, low);
  while (high - low > 1e-3 * total / num_runs) {
    const double middle = (low + high) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return filled(weights, num_runs, high);
}

std::vector<int> balanced_cuts(const graph::Graph& planned, const profile::Profile& profile,
                               const BalanceRules& rules) {
  if (rules.balance == Balance::kUniform) return layout::even_cuts(planned, rules.num_stages);
  const std::vector<int> places = places_of(planned);
  std::vector<int> cuts =
      rules.balance == Balance::kTree
          ? tree_cuts(weighed_modules(planned, profile, places, rules.objective), rules.num_stages)
          : fill_evenly(sums_between(places, parameters_of(planned)), rules.num_stages);
  for (int& cut : cuts) cut = places[cut];
  return cuts;
}

}  // namespace trireme::partition
