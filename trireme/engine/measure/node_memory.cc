#include "trireme/engine/measure/node_memory.h"

#include <algorithm>

#include "trireme/engine/memory/block_allocator.h"

namespace trireme::measure {
namespace {

/// Holders of each storage.
std::vector<std::size_t> num_holders(const std::vector<c10::Storage>& storages) {
  std::vector<std::size_t> result;
  for (const c10::Storage& storage : storages) {
    result.push_back(storage ? storage.use_count() : 0);
  }
  return result;
}

/// Indices at which there are fewer holders now than `before`.
std::vector<int> let_go(const std::vector<c10::Storage>& storages,
                        const std::vector<std::size_t>& before) {
  const std::vector<std::size_t> now = num_holders(storages);
  std::vector<int> result;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i] < before[i]) result.push_back(static_cast<int>(i));
  }
  return result;
}

/// What `kept` says in terms of storages: with inputs and outputs held here, only what the backward
/// keeps beside them is freed as its graph is.
void measure_forward(NodeTrial& trial, profile::NodeCost& cost) {
  trial.prepare();
  const std::vector<c10::Storage> inputs = trial.input_storages();
  memory::reset_peak();
  trial.forward();
  const memory::MemoryUse use = memory::memory_use();
  cost.forward_workspace_bytes = use.peak_bytes - use.live_bytes;
  const std::vector<c10::Storage> outputs = trial.output_storages();
  trial.keep_graph();
  const auto input_holders = num_holders(inputs), output_holders = num_holders(outputs);
  const std::int64_t live_bytes = memory::memory_use().live_bytes;
  trial.release_graph();
  cost.kept_bytes = live_bytes - memory::memory_use().live_bytes;
  cost.saved_inputs = let_go(inputs, input_holders);
  cost.saved_outputs = let_go(outputs, output_holders);
}

void measure_backward(NodeTrial& trial, profile::NodeCost& cost) {
  trial.prepare();
  trial.forward();
  trial.keep_graph();
  memory::reset_peak();
  const std::int64_t live_bytes = memory::memory_use().live_bytes;
  trial.backward(NodeTrial::Part::kAll);
  const std::int64_t peak_bytes = memory::memory_use().peak_bytes - live_bytes;
  cost.backward_workspace_bytes = std::max<std::int64_t>(0, peak_bytes - trial.gradient_bytes());
}

}  // namespace

void measure_memory(NodeTrial& trial, profile::NodeCost& cost) {
  measure_forward(trial, cost);
  if (trial.has(NodeTrial::Part::kAll)) measure_backward(trial, cost);
}

}  // namespace trireme::measure
