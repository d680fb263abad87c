#include "trireme/engine/program/node_program.h"

#include <ATen/SequenceNumber.h>

#include <algorithm>
#include <set>
#include <utility>

#include "trireme/engine/program/torch_failure.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_check.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/graph/lengths.h"

namespace trireme::program {
namespace {

/// Storages that some node of the program writes.
std::set<int> written_storages(const graph::Graph& graph, const std::vector<int>& positions) {
  std::set<int> storages;
  for (int position : positions) {
    for (graph::ValueId value : graph.nodes[position].writes) {
      storages.insert(graph.values[value].storage_id);
    }
  }
  return storages;
}

void mark_last_use(Operand& operand, int slot) {
  if (operand.kind == Operand::Kind::kSlot && operand.slot == slot) operand.is_last_use = true;
  for (Operand& item : operand.items) mark_last_use(item, slot);
}

int count_uses(const Operand& operand, int slot) {
  int uses = operand.kind == Operand::Kind::kSlot && operand.slot == slot ? 1 : 0;
  for (const Operand& item : operand.items) uses += count_uses(item, slot);
  return uses;
}

/// Empties `slot` as the call takes it, or after the call where it takes it twice or makes it.
void release(NodeCall& call, int slot) {
  int uses = 0;
  for (const Operand& operand : call.operands) uses += count_uses(operand, slot);
  const bool is_output =
      std::find(call.outputs.begin(), call.outputs.end(), slot) != call.outputs.end();
  if (uses == 1 && !is_output && call.kind == CallKind::kOperator) {
    for (Operand& operand : call.operands) mark_last_use(operand, slot);
  } else {
    call.releases.push_back(slot);
  }
}

}  // namespace

NodeProgram::NodeProgram(const record::Recording& recording, std::vector<int> positions,
                         std::span<const graph::ValueId> keep, ParameterBinding parameters)
    : recording_(recording), positions_(std::move(positions)), parameters_(std::move(parameters)) {
  lay_out_slots(keep);
}

void NodeProgram::lay_out_slots(std::span<const graph::ValueId> keep) {
  const graph::Graph& graph = recording_.graph;
  const std::set<int> written = written_storages(graph, positions_);
  std::map<graph::ValueId, std::size_t> last_use;
  std::set<graph::ValueId> made;
  const auto add_slot = [&](graph::ValueId value) {
    return slot_of_.emplace(value, static_cast<int>(slot_of_.size())).second;
  };
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    const graph::Node& node = graph.nodes[positions_[i]];
    for (graph::ValueId value : graph::input_values(node)) {
      const graph::Value& entry = graph.values[value];
      const bool is_private =
          entry.source == graph::ValueSource::kConstant && written.contains(entry.storage_id);
      const bool comes_from_outside = entry.source == graph::ValueSource::kInput ||
                                      entry.source == graph::ValueSource::kStepScalar ||
                                      entry.source == graph::ValueSource::kNode;
      if (!is_private && !comes_from_outside) continue;
      if (add_slot(value)) {
        if (is_private) {
          private_constants_.emplace_back(slot_of_.at(value), recording_.tensors[value]);
        } else {
          external_.push_back(value);
          if (written.contains(entry.storage_id)) written_inputs_.push_back(slot_of_.at(value));
        }
      }
      last_use[value] = i;
    }
    for (graph::ValueId value : node.outputs) {
      if (value < 0 || graph.values[value].source != graph::ValueSource::kNode) continue;
      add_slot(value);
      last_use[value] = i;
    }
  }
  releases_.resize(positions_.size());
  for (const auto& [value, position] : last_use) {
    if (std::find(keep.begin(), keep.end(), value) == keep.end()) {
      releases_[position].push_back(slot_of_.at(value));
    }
  }
}

std::optional<int> NodeProgram::slot_of(graph::ValueId value) const {
  const auto found = slot_of_.find(value);
  if (found == slot_of_.end()) return std::nullopt;
  return found->second;
}

const std::vector<NodeCall>& NodeProgram::calls_for(const graph::BatchSize& size) const {
  const std::lock_guard lock(mutex_);
  auto& calls = calls_[{size.samples, size.shorter}];
  if (calls) return *calls;
  const graph::Graph& graph = graph::at_lengths(recording_.graph, size);
  graph::check_samples(graph, size.samples);
  auto made = std::make_unique<std::vector<NodeCall>>();
  const CallContext context{graph,    recording_.tensors, recording_.opaques,
                            slot_of_, parameters_,        {size.samples, at::Device(at::kCPU)}};
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    made->push_back(make_call(graph.nodes[positions_[i]], context));
    for (int slot : releases_[i]) release(made->back(), slot);
  }
  calls = std::move(made);
  return *calls;
}

void NodeProgram::run(Slots& slots, const graph::BatchSize& size, const NodeStream& stream) const {
  const std::vector<NodeCall>& calls = calls_for(size);
  for (const auto& [slot, tensor] : private_constants_) slots.tensors[slot] = tensor.clone();
  for (int slot : written_inputs_) slots.tensors[slot] = slots.tensors[slot].clone();
  slots.sequence.reserve(calls.size() + 1);
  ModeScope mode;
  for (const NodeCall& node_call : calls) {
    slots.sequence.push_back(at::sequence_number::peek());
    ++slots.position;
    if (node_call.kind == CallKind::kSkip) continue;
    mode.set(node_call);
    try {
      if (node_call.kind == CallKind::kBatchNorm) {
        slots.statistics.push_back(call_batch_norm(node_call, slots.tensors));
      } else {
        const std::uint64_t seed = node_call.flags.random ? stream.of_node(node_call.stream_id) : 0;
        call(node_call, slots.tensors, seed);
      }
    } catch (const std::exception& failure) {
      throw node_failure("replaying", graph::at_lengths(recording_.graph, size), *node_call.node,
                         size.samples, failure);
    }
    for (int slot : node_call.releases) slots.tensors[slot].reset();
  }
  slots.sequence.push_back(at::sequence_number::peek());
}

const graph::Node* NodeProgram::node_of(const Slots& slots, std::uint64_t sequence) const {
  const auto after = std::upper_bound(slots.sequence.begin(), slots.sequence.end(), sequence);
  // The number of the run's last node is open to above: what comes later is not the run's.
  if (after == slots.sequence.begin() || after == slots.sequence.end()) return nullptr;
  const auto index = static_cast<std::size_t>(after - slots.sequence.begin()) - 1;
  return &recording_.graph.nodes[positions_[index]];
}

}  // namespace trireme::program
