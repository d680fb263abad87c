// What the ranks of a plan hold, as far as its cuts decide it: the half of Estimator about memory.

#include <algorithm>
#include <set>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/partition/estimate.h"
#include "trireme/plan/schedule/message_limits.h"

namespace trireme::partition {

using graph::ValueId;
using schedule::ChannelKind, schedule::Message;

std::int64_t Estimator::kept_bytes(const Shape& shape, const Stage& stage) {
  return shape.has_copies ? tensors(stage).kept : stage.range->kept;
}

const simulate::StageTensors& Estimator::tensors(const Stage& stage) {
  std::vector<int> key = {stage.begin, stage.end};
  key.insert(key.end(), stage.copies.begin(), stage.copies.end());
  key.push_back(-1);
  key.insert(key.end(), stage.sent.begin(), stage.sent.end());
  const auto [entry, is_new] = known_tensors_.try_emplace(std::move(key));
  if (!is_new) return entry->second;
  simulate::StageNodes nodes{stage.copies, stage.sent, {}, {}};
  for (int p = stage.begin; p < stage.end; ++p) nodes.positions.push_back(p);
  for (const ValueId id : stage.received) {
    const bool goes_on = graph_.values[id].requires_grad && ranges_.last_use(id) >= stage.end;
    (goes_on ? nodes.passed : nodes.ends).push_back(id);
  }
  entry->second = simulate::tensors_of(tensor_rules_, std::move(nodes));
  return entry->second;
}

std::vector<simulate::SentBytes> Estimator::sent_bytes(const Shape& shape) const {
  std::vector<simulate::SentBytes> sent;
  for (const Message& message : shape.messages) {
    if (message.kind != ChannelKind::kValue && message.kind != ChannelKind::kGradient) continue;
    sent.push_back({message, bytes_of(message)});
  }
  return sent;
}

/// Those of the last plan stay: most cuts are like the ones before in who sends to whom.
const schedule::Causes& Estimator::causes(const std::vector<simulate::SentBytes>& sent) {
  std::vector<int> key;
  std::vector<Message> paths;
  for (const auto& [message, bytes] : sent) {
    const Message path{message.kind, message.from_stage, message.to_stage, 0};
    if (!paths.empty() && paths.back() == path) continue;
    paths.push_back(path);
    key.insert(key.end(), {static_cast<int>(path.kind), path.from_stage, path.to_stage});
  }
  if (!causes_ || causes_paths_ != key) {
    causes_.emplace(schedule_, paths);
    causes_paths_ = std::move(key);
    known_runs_.clear();
  }
  return *causes_;
}

/// Of frozen parameters that its nodes take.
std::int64_t Estimator::frozen_bytes(const Stage& stage) const {
  std::set<ValueId> used(stage.range->frozen.begin(), stage.range->frozen.end());
  for (const int position : stage.copies) {
    for (const ValueId id : graph::input_values(graph_.nodes[position])) {
      const graph::Value& value = graph_.values[id];
      if (value.source == graph::ValueSource::kParameter && !value.requires_grad) used.insert(id);
    }
  }
  std::int64_t bytes = 0;
  for (const ValueId id : used) bytes += graph::bytes_at(graph_.values[id], 0);
  return bytes;
}

/// Samples.
std::int64_t Estimator::batch_bytes(const Stage& stage) const {
  simulate::SampleUse use = stage.range->samples;
  for (const int position : stage.copies) use |= ranges_.samples(position);
  return simulate::held_batch_bytes(rules_.batch_bytes, use, rules_.num_microbatches);
}

std::int64_t Estimator::state_bytes(const Stage& stage) const {
  const StageRange& range = *stage.range;
  return range.parameters + range.gradients + range.optimizer + stage.tie_bytes +
         batch_bytes(stage) + rules_.constant_bytes + frozen_bytes(stage);
}

std::int64_t Estimator::silent_bytes(const Shape& shape, int stage) {
  const Stage& from = shape.stages[stage];
  const simulate::StageTensors& tensors = this->tensors(from);
  if (splits_) {  // Others may be between the parts of their backward.
    const std::int64_t least = std::min(tensors.kept, tensors.waiting);
    return state_bytes(from) + (rules_.in_flight[stage] - 1) * least + tensors.forward_peak;
  }
  return state_bytes(from) + (rules_.in_flight[stage] - 1) * tensors.kept +
         std::max(tensors.forward_peak, tensors.backward_peak);
}

/// Activations, what a pass adds to them, messages.
std::int64_t Estimator::run_bytes(const Shape& shape, const std::vector<simulate::SentBytes>& sent,
                                  int stage) {
  const schedule::Causes& causes = this->causes(sent);
  const Stage& from = shape.stages[stage];
  std::vector<int> key = {stage, from.begin, from.end};
  key.insert(key.end(), from.copies.begin(), from.copies.end());
  for (const auto& [message, bytes] : sent) {
    if (message.from_stage != stage && message.to_stage != stage) continue;
    key.insert(key.end(), {static_cast<int>(message.kind), message.from_stage, message.to_stage,
                           message.item});
  }
  const auto [entry, is_new] = known_runs_.try_emplace(std::move(key));
  if (is_new) {
    const auto held = simulate::held_messages(causes, sent, stage);
    entry->second = simulate::run_memory(schedule_.ranks[stage], tensors(from), held).total();
  }
  return entry->second;
}

std::vector<std::int64_t> Estimator::peak_bytes(const Cuts& cuts) {
  std::vector<std::int64_t> peaks;
  if (!is_lean()) {
    for (int s = 0; s < problem_.num_stages; ++s) {
      peaks.push_back(excess_bytes(problem_, forecast(cuts), s) + problem_.memory_limit(s));
    }
    return peaks;
  }
  const Shape shape = this->shape(cuts);
  const std::vector<simulate::SentBytes> sent = sent_bytes(shape);
  for (int s = 0; s < problem_.num_stages; ++s) {
    peaks.push_back(state_bytes(shape.stages[s]) + run_bytes(shape, sent, s));
  }
  return peaks;
}

/// All that StageTensors counts, each at its most and never freed: what nodes keep and work with, what they make, and of
/// gradients one for each use beside those that are held, of parameters too.
void Estimator::read_tensors() {
  const std::int64_t microbatch = rules_.microbatch;
  tensors_before_ = {0};
  for (std::size_t p = 0; p < graph_.nodes.size(); ++p) {
    const profile::NodeCost& cost = *tensor_rules_.costs[p];
    std::int64_t bytes =
        cost.kept_bytes + cost.forward_workspace_bytes + cost.backward_workspace_bytes;
    for (const ValueId id : graph_.nodes[p].outputs) {
      if (id >= 0) bytes += held_bytes(id);
    }
    for (const ValueId id : graph::input_values(graph_.nodes[p])) {
      if (!graph_.values[id].requires_grad) continue;
      bytes += 2 * graph::bytes_at(graph_.values[id], microbatch);
    }
    tensors_before_.push_back(tensors_before_.back() + bytes);
  }
  for (const auto& [storage, bytes] : tensor_rules_.batch) batch_bytes_ += bytes;
}

/// A value, its gradient, and that of a later stage while both are held.
std::int64_t Estimator::held_bytes(ValueId id) const {
  const graph::Value& value = graph_.values[id];
  const std::int64_t own = simulate::span_bytes(value, rules_.microbatch);
  return own + (value.requires_grad ? 3 * graph::bytes_at(value, rules_.microbatch) : 0);
}

bool Estimator::surely_holds(const Shape& shape, int stage, std::int64_t limit) const {
  const Stage& from = shape.stages[stage];
  std::int64_t tensors = tensors_before_[from.end] - tensors_before_[from.begin] + batch_bytes_;
  for (const int position : from.copies) {
    tensors += tensors_before_[position + 1] - tensors_before_[position];
  }
  for (const ValueId id : from.received) tensors += held_bytes(id);
  // In the second part of a backward what waits and what that part makes.
  return state_bytes(from) + 2 * rules_.in_flight[stage] * tensors <= limit;
}

bool Estimator::surely_fits(const Cuts& cuts, const std::vector<std::int64_t>& limits) {
  if (!is_lean()) return false;
  const Shape shape = this->shape(cuts);
  const std::int64_t m = problem_.num_microbatches();
  std::vector<std::int64_t> messages(shape.stages.size());
  for (const auto& [message, bytes] : sent_bytes(shape)) {
    messages[message.from_stage] += m * (bytes + schedule::kMessageHeaderBytes);
    messages[message.to_stage] += m * (bytes + schedule::kMessageHeaderBytes);
  }
  for (int s = 0; s < problem_.num_stages; ++s) {
    if (surely_holds(shape, s, limits[s] - messages[s])) continue;
    const simulate::StageTensors& tensors = this->tensors(shape.stages[s]);
    const std::int64_t most = std::max(tensors.kept, tensors.waiting);
    const std::int64_t split =
        state_bytes(shape.stages[s]) + (rules_.in_flight[s] - 1) * most +
        std::max({tensors.forward_peak, tensors.input_peak, tensors.weight_peak});
    const std::int64_t held = splits_ ? split : silent_bytes(shape, s);
    if (held + messages[s] > limits[s]) return false;
  }
  return true;
}

std::int64_t Estimator::least_peak_bytes(const Cuts& cuts) {
  if (!is_lean()) return 0;
  const Shape shape = this->shape(cuts);
  std::int64_t least = 0;
  for (int s = 0; s < problem_.num_stages; ++s) least = std::max(least, silent_bytes(shape, s));
  return least;
}

std::int64_t Estimator::least_kept_bytes(const Cuts& cuts) {
  if (!is_lean()) return 0;
  const Shape shape = this->shape(cuts);
  std::int64_t least = 0;
  for (int s = 0; s < problem_.num_stages; ++s) {
    const Stage& stage = shape.stages[s];
    // Between two parts of a backward little may be kept, of all microbatches but one.
    const std::int64_t num_kept = splits_ ? 1 : rules_.in_flight[s];
    least = std::max(least, state_bytes(stage) + num_kept * kept_bytes(shape, stage));
  }
  return least;
}

}  // namespace trireme::partition
