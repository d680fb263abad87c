#include "trireme/plan/partition/stage_ranges.h"

#include <algorithm>
#include <tuple>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/schedule/execution.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::partition {

using graph::ValueId;

RangeRules range_rules(const Problem& problem, const Setting& setting) {
  RangeRules rules;
  for (int s = 0; s + 1 < problem.num_stages; ++s) {
    rules.link_kinds.push_back(problem.link_kind(s, s + 1));
  }
  for (int s = 0; s < problem.num_stages; ++s) {
    rules.slowness.push_back(1 / problem.least_speed(s));
  }
  rules.microbatch = problem.options.batch.microbatch;
  rules.num_microbatches = problem.num_microbatches();
  rules.lanes = problem.options.batch.lanes / problem.options.replicas;
  rules.replicas = problem.options.replicas;
  if (problem.options.shard_state) rules.state_shards = problem.options.replicas;
  if (problem.options.shard_parameters) rules.parameter_shards = problem.options.replicas;
  rules.in_flight = schedule::most_in_flight(make_schedule(problem, setting));
  rules.memory = problem.options.forecast.memory;
  rules.batch_bytes = simulate::batch_bytes(setting.planned, rules.microbatch);
  rules.constant_bytes = simulate::fixed_bytes(setting.planned);
  return rules;
}

namespace {

RangeRules without_passing(RangeRules rules) {
  rules.has_passing = false;
  return rules;
}

}  // namespace

StageRanges::StageRanges(const Problem& problem, const Setting& setting, const RangeRules& rules)
    : problem_(problem),
      graph_(setting.planned),
      cost_(setting.planned, problem.profile, without_passing(rules), RangeGoal::kTime),
      times_(profile::node_times(problem.profile, setting.planned)),
      samples_(simulate::sample_uses(setting.planned)) {
  read_uses();
  read_sites();
  backward_before_us_ = {0};
  for (std::size_t p = 0; p < times_.size(); ++p) {
    double us = times_[p].backward_us();
    for (const int site : sites_at_[p]) {
      us += static_cast<double>(sites_[site].elements) * problem.profile.step.fold_ns / 1000;
    }
    backward_before_us_.push_back(backward_before_us_.back() + us);
  }
}

void StageRanges::read_uses() {
  producers_.assign(graph_.values.size(), -1);
  last_uses_.assign(graph_.values.size(), -1);
  for (int p = 0; p < static_cast<int>(graph_.nodes.size()); ++p) {
    const graph::Node& node = graph_.nodes[p];
    for (const ValueId id : graph::input_values(node)) last_uses_[id] = p;
    for (const ValueId id : node.outputs) {
      if (id >= 0 && graph_.values[id].producer == node.id) producers_[id] = p;
    }
  }
}

void StageRanges::read_sites() {
  const auto positions = graph::node_positions(graph_);
  sites_at_.resize(graph_.nodes.size());
  std::vector<std::vector<int>> by_parameter(graph_.parameters.size());
  for (const graph::UseSite& site : graph::use_sites(graph_)) {
    const graph::Value& value = graph_.values[graph_.parameters[site.parameter].value];
    const int index = static_cast<int>(sites_.size());
    sites_.push_back({site.parameter, site.site, positions.at(site.nodes.front()),
                      graph::num_elements_at(value, 0), value.dtype});
    sites_at_[sites_.back().position].push_back(index);
    by_parameter[site.parameter].push_back(index);
  }
  for (std::vector<int>& sites : by_parameter) {
    if (sites.size() > 1) shared_.push_back(std::move(sites));
  }
}

const StageRange& StageRanges::at(int begin, int end) {
  const auto [entry, is_new] = known_.try_emplace({begin, end});
  StageRange& range = entry->second;
  if (!is_new) return range;
  cost_.begin(begin);
  for (int p = begin; p < end; ++p) {
    cost_.extend();
    range.samples |= samples_[p];
    for (const ValueId id : graph_.nodes[p].outputs) {
      if (id >= 0 && producers_[id] == p && last_uses_[id] >= end) range.sent.push_back(id);
    }
    for (const int index : sites_at_[p]) {
      const PlacedSite& site = sites_[index];
      if (site.site == 0) range.owned += static_cast<double>(site.elements);
    }
  }
  const simulate::StageCost cost = cost_.cost();
  range.forward_us = cost.forward_us;
  range.input_us = cost.input_us;
  range.weight_us = cost.weight_us;
  const simulate::RankMemory memory = cost_.memory(0);
  range.parameters = memory.parameters;
  range.gradients = memory.gradients;
  range.optimizer = memory.optimizer;
  range.kept = cost_.kept_bytes();
  range.received = cost_.received();
  range.frozen = cost_.frozen();
  std::sort(range.received.begin(), range.received.end());
  std::sort(range.sent.begin(), range.sent.end());
  range.backward_us = backward_before_us_[end] - backward_before_us_[begin];
  if (problem_.options.replicas > 1) range.buckets = buckets(begin, end);
  return range;
}

/// As layout::make_parameter_map fills them in plans that say nothing of it.
std::vector<RangeBucket> StageRanges::buckets(int begin, int end) const {
  std::vector<RangeBucket> buckets;
  std::map<std::tuple<layout::BucketKind, Dtype>, std::size_t> open;
  for (int p = end - 1; p >= begin; --p) {
    for (const int index : sites_at_[p]) {
      const PlacedSite& site = sites_[index];
      // Sites are in node order: the one before this one lies in the range or before it.
      const bool is_first = site.site == 0 || sites_[index - 1].position < begin;
      const layout::BucketKind kind = !is_first        ? layout::BucketKind::kSite
                                      : site.site == 0 ? layout::BucketKind::kOwner
                                                       : layout::BucketKind::kMirror;
      const auto size = static_cast<std::int64_t>(size_bytes(site.dtype));
      const auto [entry, is_new] = open.try_emplace({kind, site.dtype}, buckets.size());
      if (is_new ||
          buckets[entry->second].bucket.num_elements * size >= layout::kUsualBucketBytes) {
        entry->second = buckets.size();
        buckets.push_back({{.kind = kind, .dtype = site.dtype}, 0});
      }
      RangeBucket& bucket = buckets[entry->second];
      bucket.bucket.num_elements += aligned_elements(site.elements, site.dtype);
      bucket.ready_us =
          std::max(bucket.ready_us, backward_before_us_[end] - backward_before_us_[p]);
    }
  }
  return buckets;
}

}  // namespace trireme::partition
