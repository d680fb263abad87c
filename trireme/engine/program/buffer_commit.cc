#include "trireme/engine/program/buffer_commit.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "trireme/engine/record/buffer_policies.h"

namespace trireme::program {
namespace {

using record::batch_norm::kMomentum, record::batch_norm::kRunningMean,
    record::batch_norm::kRunningVar;

at::Tensor buffer_at(const record::Recording& recording, const graph::Node& node,
                     std::size_t index) {
  const auto* ref = std::get_if<graph::ValueRef>(&node.inputs[index].content);
  return ref == nullptr ? at::Tensor() : recording.tensors[ref->value];
}

/// `running` becomes share x batch + rest x running; products are of these dtypes, the sum of the wider.
struct Update {
  double share;
  double rest;
  at::ScalarType of_batch;
  at::ScalarType of_running;

  void operator()(at::Tensor running, const at::Tensor& batch) const {
    if (!running.defined()) return;
    running.copy_(batch.to(of_batch).mul(share).add_(running.to(of_running).mul(rest)));
  }
};

/// With ATen's roundings: where it goes by strides, and of f64, all is f64; else the share is rounded to f32 before it is
/// taken from one, and of f32 batches the variance is widened, as the sums of its squares are. Ours computes in f32 whatever autocast
/// has made of its batch.
void commit(const record::Recording& recording, const graph::Node& node, const NormStatistics& one,
            double momentum) {
  const at::Tensor mean = buffer_at(recording, node, kRunningMean);
  const at::Tensor variance = buffer_at(recording, node, kRunningVar);
  const auto& input = std::get<graph::ValueRef>(node.inputs[0].content);
  const Dtype dtype = recording.graph.values[input.value].dtype;
  if (one.is_strided || dtype == Dtype::kF64) {
    const Update update{momentum, 1 - momentum, at::kDouble, at::kDouble};
    update(mean, one.mean);
    update(variance, one.variance);
    return;
  }
  const auto share = static_cast<float>(momentum);
  const float rest = 1.0F - share;
  const bool computes_in_f32 = dtype == Dtype::kF32 || node.op != "aten::batch_norm";
  const at::ScalarType widened = computes_in_f32 ? at::kDouble : at::kFloat;
  Update{share, rest, at::kFloat, at::kFloat}(mean, one.mean);
  Update{share, rest, widened, at::kFloat}(variance, one.variance);
}

/// Of the microbatch at `index` of the step. A counter gives one over the batches so far; it is
/// incremented at the end of the step.
double momentum_of(const record::Recording& recording, const graph::Node& node, std::size_t index) {
  const at::Tensor counter = buffer_at(recording, node, kMomentum);
  if (!counter.defined()) return std::get<graph::Real>(node.inputs[kMomentum].content).fixed;
  return 1.0 /
         static_cast<double>(counter.item<std::int64_t>() + static_cast<std::int64_t>(index) + 1);
}

}  // namespace

BufferCommits::BufferCommits(const record::Recording& recording, std::int64_t microbatch)
    : recording_(recording) {
  const graph::Graph& graph = recording.graph;
  std::map<graph::ValueId, graph::BufferPolicy> policies;
  for (const graph::Buffer& buffer : graph.buffers) policies[buffer.value] = buffer.policy;
  const std::map<graph::ValueId, int> no_slots;
  const ParameterBinding no_parameters;
  const CallContext context{graph,    recording.tensors, recording.opaques,
                            no_slots, no_parameters,     {microbatch, at::Device(at::kCPU)}};
  for (const graph::Node& node : graph.nodes) {
    for (const graph::ValueId written : node.writes) {
      const auto policy = policies.find(written);
      if (policy == policies.end()) continue;
      if (policy->second == graph::BufferPolicy::kBatchNorm) norms_[node.id] = &node;
      if (policy->second == graph::BufferPolicy::kCounter) {
        increments_.push_back(make_call(node, context));
      }
    }
  }
}

void BufferCommits::fold(const std::vector<std::vector<NormStatistics>>& statistics) const {
  const at::NoGradGuard no_grad;
  std::size_t index = 0;  // of those that the step has
  for (const std::vector<NormStatistics>& microbatch : statistics) {
    for (const NormStatistics& one : microbatch) {
      const graph::Node& node = *norms_.at(one.node);
      commit(recording_, node, one, momentum_of(recording_, node, index));
    }
    index += microbatch.empty() ? 0 : 1;
  }
}

void BufferCommits::count(std::int64_t num_microbatches) const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> no_slots;
  for (const NodeCall& increment : increments_) {
    for (std::int64_t m = 0; m < num_microbatches; ++m) call(increment, no_slots, 0);
  }
}

}  // namespace trireme::program
