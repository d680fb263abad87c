#include "trireme/plan/partition/range_cost.h"

#include <algorithm>

#include "trireme/base/check.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/simulate/stage_cost.h"
#include "trireme/plan/simulate/stage_tensors.h"

// A range [i, j) gets one more node: what changes?
//
//     input made before i, first use in the range     is received; its gradient is sent
//     input made in the range, no use after j         is no more sent, so not kept for that
//     output that is used after j                     is sent, and kept until the backward
//     storage that the node saves                     is kept
//     use site                                        value, gradients, optimizer state
//
// Tables are by value, storage and parameter; entries carry the stamp of their range, so that a new
// range begins without clearing them.

namespace trireme::partition {
namespace {

using graph::ValueId;

constexpr std::int64_t kAlignmentBytes = 64;  // Of slots in a bucket.

/// Ascending, without repeats.
void keep_once(std::vector<int>& numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace

std::int64_t aligned_elements(std::int64_t elements, Dtype dtype) {
  const std::int64_t multiple = kAlignmentBytes / static_cast<std::int64_t>(size_bytes(dtype));
  return (elements + multiple - 1) / multiple * multiple;
}

RangeCost::RangeCost(const graph::Graph& planned, const profile::Profile& profile, RangeRules rules,
                     RangeGoal goal)
    : graph_(planned), profile_(profile), rules_(std::move(rules)), goal_(goal) {
  if (!rules_.slowness.empty()) least_slowness_ = std::ranges::min(rules_.slowness);
  read_kinds();
  read_values();
  read_nodes(profile);
  read_sites();
  read_boundaries();
  for (const auto& [storage, bytes] : simulate::batch_storages(graph_, rules_.microbatch)) {
    batch_[storages_.at(storage)] = bytes;
  }
  received_in_.assign(values_.size(), 0);
  used_in_.assign(graph_.parameters.size(), 0);
}

void RangeCost::read_kinds() {
  if (rules_.in_flight.size() < 2) return;
  if (rules_.link_kinds.empty())
    rules_.link_kinds.assign(rules_.in_flight.size() - 1, profile::LinkKind::kHost);
  for (profile::LinkKind kind : rules_.link_kinds) {
    if (std::find(kinds_.begin(), kinds_.end(), kind) == kinds_.end()) kinds_.push_back(kind);
  }
  TRIREME_CHECK(kinds_.size() <= kMaxKinds, "more kinds of links than there are");
}

std::size_t RangeCost::kind_after(int stage) const {
  if (stage < 0 || static_cast<std::size_t>(stage) >= rules_.link_kinds.size()) return 0;
  return std::find(kinds_.begin(), kinds_.end(), rules_.link_kinds[stage]) - kinds_.begin();
}

RangeCost::ByKind RangeCost::link_us(std::int64_t bytes) const {
  ByKind us{};
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    us[k] = profile::link_us(profile_, kinds_[k], bytes, true);
  }
  return us;
}

double RangeCost::slowest_link_us(std::int64_t bytes) const {
  const ByKind us = link_us(bytes);
  return *std::max_element(us.begin(), us.end());
}

void RangeCost::read_values() {
  for (const graph::Value& value : graph_.values) {
    storages_.try_emplace(value.storage_id, static_cast<int>(storages_.size()));
  }
  pieces_.resize(storages_.size());
  const auto positions = graph::node_positions(graph_);
  values_.resize(graph_.values.size());
  for (std::size_t v = 0; v < values_.size(); ++v) {
    const graph::Value& from = graph_.values[v];
    if (from.source != graph::ValueSource::kNode) continue;
    Value& value = values_[v];
    value.producer = positions.at(from.producer);
    value.storage = storages_.at(from.storage_id);
    value.has_gradient = from.requires_grad;
    value.bytes = simulate::span_bytes(from, rules_.microbatch);
    value.message_us = link_us(value.bytes);
    value.send_us = profile::message_work_us(profile_.step, value.bytes);
    if (!value.has_gradient) continue;
    value.gradient_bytes = graph::bytes_at(from, rules_.microbatch);
    value.gradient_us = link_us(value.gradient_bytes);
    value.send_back_us = profile::message_work_us(profile_.step, value.gradient_bytes);
  }
}

void RangeCost::read_nodes(const profile::Profile& profile) {
  const auto times = profile::node_times(profile, graph_);
  const auto costs = profile::node_costs(profile, graph_);
  std::vector<std::int64_t> passing(graph_.nodes.size());
  if (rules_.has_passing) passing = simulate::passing_bytes(graph_, profile, rules_.microbatch);
  const auto samples = simulate::sample_uses(graph_);
  nodes_.resize(graph_.nodes.size());
  for (std::size_t p = 0; p < nodes_.size(); ++p) {
    const graph::Node& from = graph_.nodes[p];
    Node& node = nodes_[p];
    node.forward_us = times[p].forward_us;
    node.input_us = times[p].input_us;
    node.weight_us = times[p].weight_us;
    node.kept_bytes = costs[p]->kept_bytes;
    node.passing_bytes = passing[p];
    node.samples = samples[p];
    const std::vector<ValueId> inputs = graph::input_values(from);
    std::vector<int> viewed;
    for (const ValueId id : inputs) {
      const graph::Value& input = graph_.values[id];
      viewed.push_back(storages_.at(input.storage_id));
      if (input.source == graph::ValueSource::kParameter && !input.requires_grad) {
        node.frozen.push_back(id);
      }
      if (values_[id].producer < 0) continue;
      node.inputs.push_back(id);
      values_[id].last_use = static_cast<int>(p);
    }
    for (const ValueId id : from.outputs) {
      if (id < 0 || graph_.values[id].producer != from.id) continue;
      node.made.push_back(id);
      const int storage = values_[id].storage;
      if (std::ranges::find(viewed, storage) == viewed.end()) node.fresh.push_back(storage);
    }
    for (const int index : costs[p]->saved_inputs) {
      node.saved.push_back(storages_.at(graph_.values[inputs[index]].storage_id));
    }
    for (const int index : costs[p]->saved_outputs) {
      const ValueId id = from.outputs[index];
      if (id >= 0) node.saved.push_back(storages_.at(graph_.values[id].storage_id));
    }
    for (std::vector<int>* places : {&node.inputs, &node.fresh, &node.saved}) keep_once(*places);
  }
}

void RangeCost::read_sites() {
  const auto positions = graph::node_positions(graph_);
  for (const graph::UseSite& from : graph::use_sites(graph_)) {
    const graph::Value& value = graph_.values[graph_.parameters[from.parameter].value];
    const auto size = static_cast<std::int64_t>(size_bytes(value.dtype));
    const std::int64_t elements = graph::num_elements_at(value, 0);
    const std::int64_t gradient_size = simulate::gradient_bytes_per_element(value.dtype);
    Site site;
    site.parameter = from.parameter;
    site.is_owner = from.site == 0;
    site.elements = aligned_elements(elements, value.dtype);
    site.value_bytes = site.elements * size;
    site.gradient_bytes =
        site.elements * simulate::held_bytes_per_element(value.dtype, rules_.memory.gradient_dtype,
                                                         rules_.lanes, rules_.replicas);
    site.fold_us = static_cast<double>(elements) * profile_.step.fold_ns / 1000;
    site.tie_us = (slowest_link_us(elements * gradient_size) + slowest_link_us(elements * size)) /
                  static_cast<double>(rules_.num_microbatches);
    nodes_[positions.at(from.nodes.front())].sites.push_back(site);
  }
}

void RangeCost::read_boundaries() {
  largest_crossing_.assign(nodes_.size() + 1, 0);
  for (const Value& value : values_) {
    for (int cut = value.producer + 1; value.producer >= 0 && cut <= value.last_use; ++cut) {
      largest_crossing_[cut] = std::max(largest_crossing_[cut], value.bytes);
    }
  }
}

void RangeCost::begin(int first) {
  begin_ = end_ = first;
  ++stamp_;
  sums_ = {};
  received_.clear();
  frozen_.clear();
}

void RangeCost::extend() {
  const int position = end_++;
  const Node& node = nodes_[position];
  sums_.cost.forward_us += node.forward_us;
  sums_.cost.input_us += node.input_us;
  sums_.cost.weight_us += node.weight_us;
  sums_.kept += node.kept_bytes;
  sums_.passing = std::max(sums_.passing, node.passing_bytes);
  sums_.samples |= node.samples;
  for (const int id : node.inputs) {
    const Value& value = values_[id];
    const bool is_last = value.last_use == position;
    if (value.producer >= begin_ || received_in_[id] == stamp_) {
      if (is_last) end_use(value);
    } else {
      received_in_[id] = stamp_;
      received_.push_back(id);
      receive(value, !is_last);
    }
  }
  make(node, position);
  for (const int storage : node.saved) save(storage);
  for (const Site& site : node.sites) add_site(site);
  for (const ValueId value : node.frozen) add_frozen(value);
}

void RangeCost::add_frozen(ValueId value) {
  if (received_in_[value] == stamp_) return;
  received_in_[value] = stamp_;
  frozen_.push_back(value);
  sums_.frozen += graph::bytes_at(graph_.values[value], 0);
}

RangeCost::Piece& RangeCost::piece(int storage) {
  Piece& piece = pieces_[storage];
  if (piece.range != stamp_) {
    piece = {};
    piece.range = stamp_;
  }
  return piece;
}

std::int64_t RangeCost::kept_bytes(const Piece& piece) {
  const bool is_kept = piece.is_saved || piece.num_sent > 0;
  return is_kept ? piece.bytes + piece.received_bytes : 0;
}

/// The gradient of a value that a later stage uses comes in (sign 1), or does not after all (-1).
void RangeCost::add_gradient_in(const Value& value, int sign) {
  sums_.cost.received_bytes += sign * value.gradient_bytes;
  sums_.gradients_received += sign * value.gradient_bytes;
  for (std::size_t k = 0; k < kMaxKinds; ++k) {
    sums_.gradients_in_us[k] += sign * value.gradient_us[k];
  }
}

/// goes_on   to a later stage too, from which its gradient comes first.
void RangeCost::receive(const Value& value, bool goes_on) {
  sums_.cost.received_bytes += value.bytes;
  for (std::size_t k = 0; k < kMaxKinds; ++k) sums_.values_in_us[k] += value.message_us[k];
  sums_.largest_received = std::max(sums_.largest_received, value.bytes);
  if (!value.has_gradient) {
    sums_.plain_received += value.bytes;
    Piece& piece = this->piece(value.storage);
    sums_.kept -= kept_bytes(piece);
    piece.received_bytes += value.bytes;
    sums_.kept += kept_bytes(piece);
    return;
  }
  sums_.kept += value.bytes;
  sums_.cost.sent_bytes += value.gradient_bytes;
  sums_.cost.copy_us += value.send_back_us;
  sums_.largest_gradient_sent = std::max(sums_.largest_gradient_sent, value.gradient_bytes);
  if (!goes_on) return;
  add_gradient_in(value, 1);
}

/// No stage after the range uses the value.
void RangeCost::end_use(const Value& value) {
  if (value.has_gradient) add_gradient_in(value, -1);
  if (value.producer < begin_) return;
  sums_.cost.sent_bytes -= value.bytes;
  sums_.cost.copy_us -= value.send_us;
  Piece& piece = this->piece(value.storage);
  sums_.kept -= kept_bytes(piece);
  --piece.num_sent;
  sums_.kept += kept_bytes(piece);
}

void RangeCost::make(const Node& node, int position) {
  for (const int storage : node.fresh) piece(storage).is_made = true;
  for (const int id : node.made) {
    const Value& value = values_[id];
    Piece& piece = this->piece(value.storage);
    sums_.kept -= kept_bytes(piece);
    if (piece.is_made) piece.bytes = std::max(piece.bytes, value.bytes);
    if (value.last_use > position) {
      ++piece.num_sent;
      sums_.cost.sent_bytes += value.bytes;
      sums_.cost.copy_us += value.send_us;
      if (value.has_gradient) add_gradient_in(value, 1);
    }
    sums_.kept += kept_bytes(piece);
  }
}

void RangeCost::save(int storage) {
  Piece& piece = this->piece(storage);
  sums_.kept -= kept_bytes(piece);
  if (const auto field = batch_.find(storage); field != batch_.end()) piece.bytes = field->second;
  piece.is_saved = true;
  sums_.kept += kept_bytes(piece);
}

void RangeCost::add_site(const Site& site) {
  sums_.cost.weight_us += site.fold_us;
  sums_.gradients += site.gradient_bytes;
  if (used_in_[site.parameter] == stamp_) return;
  used_in_[site.parameter] = stamp_;
  sums_.parameters += site.value_bytes;
  if (site.is_owner) {
    sums_.optimizer += site.elements * rules_.memory.optimizer_bytes_per_element;
  } else {
    sums_.tie_us += site.tie_us;
  }
}

simulate::StageCost RangeCost::cost() const {
  simulate::StageCost cost = sums_.cost;
  if (sums_.samples.forward) cost.read_us = profile_.step.read_us;
  return cost;
}

double RangeCost::slowness(int stage) const {
  return rules_.slowness.empty() ? 1 : rules_.slowness[stage];
}

double RangeCost::time_us(int stage) const {
  return sums_.tie_us +
         std::max({cost().work_us() * slowness(stage), sums_.values_in_us[kind_after(stage - 1)],
                   sums_.gradients_in_us[kind_after(stage)]});
}

/// Of time or bytes, as the goal `of` has them for its cost.
double RangeCost::least(RangeGoal of) const {
  if (of == RangeGoal::kMemory) return static_cast<double>(sums_.parameters + sums_.gradients);
  return (sums_.cost.forward_us + sums_.cost.backward_us()) * least_slowness_;
}

double RangeCost::least_cost() const { return least(goal_); }

double RangeCost::least_bound() const {
  return least(goal_ == RangeGoal::kTime ? RangeGoal::kMemory : RangeGoal::kTime);
}

simulate::RankMemory RangeCost::memory(int stage) const {
  simulate::RankMemory memory;
  memory.parameters = sums_.parameters / rules_.parameter_shards;
  memory.gradients = sums_.gradients / rules_.parameter_shards;
  memory.optimizer = sums_.optimizer / rules_.state_shards;
  memory.activations = rules_.in_flight[stage] * sums_.kept;
  memory.transient = sums_.passing + sums_.plain_received + sums_.gradients_received;
  memory.messages =
      sums_.largest_received + sums_.largest_gradient_sent + 2 * largest_crossing_[end_];
  memory.batch =
      simulate::held_batch_bytes(rules_.batch_bytes, sums_.samples, rules_.num_microbatches);
  memory.fixed = rules_.constant_bytes + sums_.frozen;
  return memory;
}

RangePrice RangeCost::price(int stage) const {
  const auto bytes = static_cast<double>(this->bytes(stage));
  const double us = time_us(stage);
  return goal_ == RangeGoal::kTime ? RangePrice{us, bytes} : RangePrice{bytes, us};
}

}  // namespace trireme::partition
