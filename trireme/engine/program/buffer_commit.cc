#include "trireme/engine/program/buffer_commit.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <map>
#include <set>

#include "trireme/engine/program/node_call.h"
#include "trireme/engine/record/batch_norm_node.h"

namespace trireme::program {
namespace {

using record::batch_norm::kMomentum, record::batch_norm::kRunningMean,
    record::batch_norm::kRunningVar;

at::Tensor buffer_at(const record::Recording& recording, const graph::Node& node,
                     std::size_t index) {
  const auto* ref = std::get_if<graph::ValueRef>(&node.inputs[index].content);
  return ref == nullptr ? at::Tensor() : recording.tensors[ref->value];
}

/// The formulas that give ATen's bits; each differs in its rounding.
void commit(const record::Recording& recording, const graph::Node& node,
            const NormStatistics& one) {
  const double momentum = std::get<graph::Real>(node.inputs[kMomentum].content).fixed;
  at::Tensor mean = buffer_at(recording, node, kRunningMean);
  at::Tensor variance = buffer_at(recording, node, kRunningVar);
  if (mean.defined()) mean.copy_(one.mean.mul(momentum).add_(mean.mul(1 - momentum)));
  if (variance.defined()) {
    variance.copy_(variance.mul(1 - momentum).add_(one.variance, momentum));
  }
}

}  // namespace

void commit_batch_norms(const record::Recording& recording,
                        const std::vector<std::vector<NormStatistics>>& statistics) {
  const at::NoGradGuard no_grad;
  std::map<graph::NodeId, const graph::Node*> nodes;
  for (const graph::Node& node : recording.graph.nodes) nodes[node.id] = &node;
  for (const auto& microbatch : statistics) {
    for (const NormStatistics& one : microbatch) commit(recording, *nodes.at(one.node), one);
  }
}

void commit_counters(const record::Recording& recording, std::int64_t num_microbatches,
                     std::int64_t microbatch) {
  const at::NoGradGuard no_grad;
  std::set<graph::ValueId> counters;
  for (const graph::Buffer& buffer : recording.graph.buffers) {
    if (buffer.policy == graph::BufferPolicy::kCounter) counters.insert(buffer.value);
  }
  const std::map<graph::ValueId, int> no_slots;
  const ParameterBinding no_parameters;
  const CallContext context{recording.graph, recording.tensors, recording.opaques,
                            no_slots,        no_parameters,     {microbatch, at::Device(at::kCPU)}};
  std::vector<at::Tensor> slots;
  for (const graph::Node& node : recording.graph.nodes) {
    if (node.writes.empty() || !counters.contains(node.writes[0])) continue;
    const NodeCall increment = make_call(node, context);
    for (std::int64_t m = 0; m < num_microbatches; ++m) call(increment, slots, 0);
  }
}

}  // namespace trireme::program
