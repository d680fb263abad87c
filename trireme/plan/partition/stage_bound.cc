#include "trireme/plan/partition/stage_bound.h"

#include <algorithm>

#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::partition {
namespace {

constexpr double kRounding = 1 + 1e-9;  // Sums in another order.
constexpr int kBisections = 40;

}  // namespace

StageBound::StageBound(const graph::Graph& recorded, const profile::Profile& profile,
                       const std::set<graph::NodeId>& copied) {
  const std::vector<bool> allowed = graph::allowed_cuts(recorded);
  const auto num_nodes = static_cast<int>(recorded.nodes.size());
  for (int c = 1; c < num_nodes; ++c) {
    if (allowed[c] || !copied.empty()) places_.push_back(c);
  }
  places_.push_back(num_nodes);
  std::vector<profile::NodeTime> times = profile::node_times(profile, recorded);
  for (int p = 0; p < num_nodes; ++p) {
    if (copied.contains(recorded.nodes[p].id)) times[p] = {};
  }
  work_before_us_ = {0};
  for (const profile::NodeTime& time : times) {
    work_before_us_.push_back(work_before_us_.back() + time.forward_us + time.backward_us());
  }
  read_path(recorded, times, copied);
}

/// The path to the losses on which most work lies, over values whose gradients come back the same way.
void StageBound::read_path(const graph::Graph& recorded,
                           const std::vector<profile::NodeTime>& times,
                           const std::set<graph::NodeId>& copied) {
  const auto num_nodes = static_cast<int>(recorded.nodes.size());
  std::vector<int> producers(recorded.values.size(), -1), from(num_nodes, -1);
  std::vector<double> longest(num_nodes, 0);
  for (int p = 0; p < num_nodes; ++p) {
    const graph::Node& node = recorded.nodes[p];
    for (const graph::ValueId id : graph::input_values(node)) {
      const int producer = producers[id];
      if (producer < 0 || !recorded.values[id].requires_grad) continue;
      if (copied.contains(recorded.nodes[producer].id) || longest[producer] < longest[p]) continue;
      longest[p] = longest[producer];
      from[p] = producer;
    }
    longest[p] += times[p].forward_us + times[p].backward_us();
    for (const graph::ValueId id : node.outputs) {
      if (id >= 0 && recorded.values[id].producer == node.id) producers[id] = p;
    }
  }
  int last = -1;
  for (const graph::LossOutput& loss : recorded.losses) {
    const int at = producers[loss.value];
    if (loss.coefficient != 0 && at >= 0 && (last < 0 || longest[at] > longest[last])) last = at;
  }
  std::vector<bool> is_on_path(num_nodes, false);
  for (; last >= 0; last = from[last]) is_on_path[last] = true;
  forward_before_us_ = path_before_us_ = {0};
  path_nodes_before_ = {0};
  for (int p = 0; p < num_nodes; ++p) {
    const double part = is_on_path[p] ? 1 : 0;
    forward_before_us_.push_back(forward_before_us_.back() + part * times[p].forward_us);
    path_before_us_.push_back(path_before_us_.back() +
                              part * (times[p].forward_us + times[p].backward_us()));
    path_nodes_before_.push_back(path_nodes_before_.back() + (is_on_path[p] ? 1 : 0));
  }
}

/// Where a stage from `begin` ends at the latest.
int StageBound::filled_until(int begin, double step_us, const Steps& steps,
                             const Speeds& speeds) const {
  const double lead_us =
      (steps.splits_backwards ? forward_before_us_ : path_before_us_)[begin] / speeds.most;
  const auto m = static_cast<double>(steps.num_microbatches);
  const auto fits = [&](int end) {
    const bool waits = path_nodes_before_[end] > path_nodes_before_[begin];
    const double work_us = (work_before_us_[end] - work_before_us_[begin]) / speeds.own;
    return (waits ? lead_us : 0) + m * work_us <= step_us * kRounding;
  };
  const auto first = std::upper_bound(places_.begin(), places_.end(), begin);
  const auto end = std::partition_point(first, places_.end(), fits);
  return end == first ? begin : *(end - 1);
}

int StageBound::least_stages(double step_us, const Steps& steps) const {
  const int num_nodes = places_.back();
  int num_stages = 0;
  for (int at = 0; at < num_nodes; ++num_stages) {
    const int end = filled_until(at, step_us, steps, {});
    if (end == at) return num_nodes + 1;
    at = end;
  }
  return num_stages;
}

bool StageBound::may_do(double step_us, const Steps& steps,
                        const std::vector<double>& speeds) const {
  const double most = std::ranges::max(speeds);
  int at = 0;
  for (const double own : speeds) at = filled_until(at, step_us, steps, {own, most});
  return at == places_.back();
}

std::vector<int> StageBound::cuts(int num_stages, const Steps& steps) const {
  double low = 0;
  double high = work_before_us_.back() * static_cast<double>(steps.num_microbatches + 1);
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2;
    (least_stages(middle, steps) <= num_stages ? high : low) = middle;
  }
  std::vector<int> cuts;
  for (int at = filled_until(0, high, steps, {}); at < places_.back();
       at = filled_until(at, high, steps, {})) {
    cuts.push_back(at);
  }
  return cuts;
}

}  // namespace trireme::partition
