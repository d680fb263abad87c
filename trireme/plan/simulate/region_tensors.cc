#include "trireme/plan/simulate/region_tensors.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/simulate/stage_cost.h"

// Regions r = 0, 1, ... of a stage. Beside the tensors of region r by itself (tensors_of), which has the values that it receives and
// the gradients that it gets, there are
//
//     in its forward            what the stage received and what regions before it made for others, but for what it takes;
//                               values for other stages
//     in its backward           of that what regions before it take; fields of the batch, but for the first region; gradients
//                               that wait for a region before it, or that another stage sent for one
//     the same in two parts     what waits in regions behind it
//
// The second forward is as the first, with the gradients that the region gets.

namespace trireme::simulate {
namespace {

using graph::ValueId;

/// What crosses regions, or comes from other stages: memory or a gradient.
struct CrossingBytes {
  std::int64_t bytes = 0;
  bool is_received = false;  ///< From an earlier stage.
  bool goes_on = false;      ///< To a later one.
  std::vector<int> regions =
      {};  ///< That have it, ascending: of what is made here, the first makes it.

  bool is_of(int region) const { return std::ranges::binary_search(regions, region); }
};

/// The regions of one stage.
class RegionWalk {
 public:
  RegionWalk(const graph::Graph& graph, std::int64_t microbatch, const DividedPlan& divided,
             int stage)
      : graph_(graph),
        microbatch_(microbatch),
        begin_(divided.regions.begin(stage)),
        num_(divided.regions.end(stage) - begin_) {
    for (const layout::Crossing& crossing : divided.crossings) add(crossing);
    add_fields(divided);
  }

  /// tensors   by region.
  StageTensors measure(const std::vector<StageTensors>& tensors) const {
    StageTensors all{.kept = fields_};
    for (const CrossingBytes& kept : kept_) all.kept += kept.bytes;
    for (const StageTensors& one : tensors) all.waiting += one.waiting;
    std::int64_t waiting = all.waiting;
    for (int r = 0; r < num_; ++r) {
      const StageTensors& one = tensors[r];
      const std::int64_t again = one.forward_peak + received_gradients(r);
      const std::int64_t beside = held_in_backward(r);
      waiting -= one.waiting;  // Of those behind it.
      const std::int64_t before = all.waiting - waiting - one.waiting;
      all.forward_peak = std::max(all.forward_peak, held_in_forward(r) + one.forward_peak);
      all.backward_peak = std::max(all.backward_peak, beside + std::max(again, one.backward_peak));
      all.input_peak = std::max(all.input_peak, beside + waiting + std::max(again, one.input_peak));
      all.weight_peak = std::max(all.weight_peak, before + one.weight_peak);
    }
    all.forward_peak = std::max(all.forward_peak, all.kept);
    all.backward_peak = std::max(all.backward_peak, all.kept);
    all.input_peak = std::max(all.input_peak, all.kept);
    return all;
  }

 private:
  void add(const layout::Crossing& crossing) {
    const graph::Value& value = graph_.values[crossing.value];
    CrossingBytes bytes{.is_received = crossing.stages.front() < begin_,
                        .goes_on = crossing.stages.back() >= begin_ + num_};
    for (const int stage : crossing.stages) {
      if (stage >= begin_ && stage < begin_ + num_) bytes.regions.push_back(stage - begin_);
    }
    if (bytes.regions.empty()) return;
    if (crossing.has_gradient) {
      gradients_.push_back(bytes);
      gradients_.back().bytes = graph::bytes_at(value, microbatch_);
    }
    bytes.bytes = span_bytes(value, microbatch_);
    const bool is_kept = bytes.is_received || bytes.regions.size() > 1;
    (is_kept ? kept_ : sent_).push_back(std::move(bytes));
  }

  void add_fields(const DividedPlan& divided) {
    const std::unordered_map<int, std::int64_t> batch = batch_storages(graph_, microbatch_);
    std::set<int> seen;
    for (int r = begin_; r < begin_ + num_; ++r) {
      for (const int position : divided.positions[r]) {
        for (const ValueId id : graph::input_values(graph_.nodes[position])) {
          const auto field = batch.find(graph_.values[id].storage_id);
          if (field != batch.end() && seen.insert(field->first).second) fields_ += field->second;
        }
      }
    }
  }

  std::int64_t held_in_forward(int region) const {
    std::int64_t held = 0;
    for (const CrossingBytes& kept : kept_) {
      const bool is_there = kept.is_received || kept.regions.front() < region;
      if (is_there && !kept.is_of(region)) held += kept.bytes;
    }
    for (const CrossingBytes& sent : sent_) held += sent.regions[0] < region ? sent.bytes : 0;
    return held;
  }

  std::int64_t held_in_backward(int region) const {
    std::int64_t held = region > 0 ? fields_ : 0;
    for (const CrossingBytes& kept : kept_) {
      const int first_taker = kept.is_received ? kept.regions[0] : kept.regions[1];
      if (first_taker < region && !kept.is_of(region)) held += kept.bytes;
    }
    for (const CrossingBytes& gradient : gradients_) {
      const int first = gradient.regions.front(), last = gradient.regions.back();
      if (gradient.goes_on && region != last) held += gradient.bytes;
      const bool is_passed =
          region < last && !gradient.is_of(region) && (gradient.is_received || region > first);
      if (is_passed) held += gradient.bytes;
    }
    return held;
  }

  /// That come to a region's values from regions behind it, or later stages.
  std::int64_t received_gradients(int region) const {
    std::int64_t bytes = 0;
    for (const CrossingBytes& gradient : gradients_) {
      const bool is_last = gradient.regions.back() == region;
      if (gradient.is_of(region) && (!is_last || gradient.goes_on)) bytes += gradient.bytes;
    }
    return bytes;
  }

  const graph::Graph& graph_;
  std::int64_t microbatch_;
  int begin_, num_;  ///< Of the regions, in the divided plan.
  std::vector<CrossingBytes> kept_, sent_, gradients_;
  std::int64_t fields_ = 0;
};

}  // namespace

DividedPlan::DividedPlan(const graph::Graph& planned, const layout::Plan& plan)
    : regions(layout::regions_as_stages(planned, plan)),
      crossings(layout::crossings(planned, regions.plan)),
      positions(layout::stage_positions(planned, regions.plan)) {}

StageNodes DividedPlan::nodes_of(int region) const {
  StageNodes nodes{.positions = positions[region], .sent = {}, .ends = {}, .passed = {}};
  for (const layout::Crossing& crossing : crossings) {
    if (crossing.stages.front() == region) {
      nodes.sent.push_back(crossing.value);
    } else if (layout::previous_in_chain(crossing, region) >= 0) {
      const bool goes_on = layout::next_in_chain(crossing, region) >= 0;
      (goes_on ? nodes.passed : nodes.ends).push_back(crossing.value);
    }
  }
  return nodes;
}

StageTensors recomputed_tensors(const TensorRules& rules, const DividedPlan& divided, int stage) {
  const layout::RegionPlan& regions = divided.regions;
  std::vector<StageTensors> tensors;
  for (int r = regions.begin(stage); r < regions.end(stage); ++r) {
    StageNodes nodes = divided.nodes_of(r);
    nodes.holds_received = regions.end(stage) - regions.begin(stage) > 1;
    tensors.push_back(tensors_of(rules, std::move(nodes)));
  }
  return RegionWalk(rules.graph, rules.microbatch, divided, stage).measure(tensors);
}

}  // namespace trireme::simulate
