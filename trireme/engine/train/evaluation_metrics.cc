#include "trireme/engine/train/evaluation_metrics.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "trireme/base/json.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/engine/train/telling_others.h"
#include "trireme/error.h"
#include "trireme/plan/graph/lengths.h"
#include "trireme/plan/layout/crossings.h"

namespace trireme::train {
namespace {

// Apart from groups, channels and gathered weights.
constexpr transport::Tag kOutputTags = transport::Tag{1} << 62 | transport::Tag{1} << 61;

std::span<std::byte> memory_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

at::Tensor empty_output(const graph::Graph& graph, const graph::Output& output,
                        const graph::BatchSize& size) {
  const graph::Value& value = graph::at_lengths(graph, size).values[output.value];
  std::vector<std::int64_t> shape;
  for (const graph::Size& dim : value.shape) shape.push_back(dim.at(size.samples));
  return at::empty(shape, record::to_scalar_type(value.dtype));
}

std::string to_text(const std::vector<LossTotal>& results) {
  Json list = Json::array();
  for (const LossTotal& result : results) list.push_back({result.name, result.sum});
  return list.dump();
}

LossTotal to_result(std::string name, double value) {
  return {.name = std::move(name), .sum = value, .weight = 1, .coefficient = 0};
}

std::vector<LossTotal> results_of(const std::string& text) {
  std::vector<LossTotal> results;
  for (const Json& one : Json::parse(text)) {
    results.push_back(to_result(one.at(0).get<std::string>(), one.at(1).get<double>()));
  }
  return results;
}

}  // namespace

void check_metrics(const Workload& workload, const graph::Graph& graph) {
  if (!workload.metrics || !graph.outputs.empty()) return;
  throw Error(ErrorKind::kInvalidArgument,
              "the workload has metrics, but the model's forward returns no output in eval mode; "
              "return some beside the losses, as in {loss, trireme::output(scores, \"scores\")}");
}

void EvaluationMetrics::add(const Batch& outputs) {
  for (const auto& metric : metrics_) metric->add(outputs);
}

std::vector<LossTotal> EvaluationMetrics::results(const StepLosses& losses) {
  std::set<std::string> names;
  for (const LossTotal& loss : losses.losses) names.insert(loss.name);
  std::vector<LossTotal> results;
  for (const auto& metric : metrics_) {
    for (auto& [name, value] : metric->results()) {
      if (!names.insert(name).second) {
        throw Error(ErrorKind::kModelFailure,
                    "two losses or metrics of the evaluation are called '" + name + "'");
      }
      if (!std::isfinite(value)) {
        throw Error(ErrorKind::kModelFailure, "the metric '" + name + "' of the evaluation is " +
                                                  std::to_string(value) +
                                                  "; a result is a finite number");
      }
      results.push_back(to_result(name, value));
    }
  }
  return results;
}

GatheredOutputs::GatheredOutputs(const collectives::World& world, const Workload& workload,
                                 const graph::Graph& graph, const layout::Plan& plan)
    : world_(world), graph_(graph), plan_(plan), stages_(graph.outputs.size()) {
  const auto outputs = layout::stage_outputs(graph, plan);
  for (std::size_t s = 0; s < outputs.size(); ++s) {
    for (const int output : outputs[s]) stages_[output] = static_cast<int>(s);
  }
  if (world.rank() == 0) metrics_ = std::make_unique<EvaluationMetrics>(workload);
}

void GatheredOutputs::keep(const program::StageProgram& stage, std::int64_t microbatch,
                           const Batch& batch,
                           const std::function<at::Tensor(graph::ValueId)>& made) {
  for (const int output : stage.outputs()) {
    kept_[microbatch][output] = program::output_of(graph_, graph_.outputs[output], batch, made);
  }
}

void GatheredOutputs::gather(std::int64_t microbatch, int replica, const graph::BatchSize& size,
                             std::int64_t step) {
  Batch outputs;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const int from = layout::rank_of(plan_, stages_[i], replica);
    at::Tensor tensor = bring(microbatch, static_cast<int>(i), from, size, step);
    if (tensor.defined()) outputs.set(graph_.outputs[i].name, std::move(tensor));
  }
  kept_.erase(microbatch);
  if (metrics_) metrics_->add(outputs);
}

/// Defined on the first rank.
at::Tensor GatheredOutputs::bring(std::int64_t microbatch, int output, int from,
                                  const graph::BatchSize& size, std::int64_t step) {
  const transport::Tag tag = kOutputTags + num_messages_++;
  const bool has_it = from == world_.rank();
  if (has_it && from == 0) return kept_.at(microbatch).at(output);
  if (!has_it && world_.rank() != 0) return {};
  const int peer = has_it ? 0 : from;
  const at::Tensor tensor =
      has_it ? kept_.at(microbatch).at(output) : empty_output(graph_, graph_.outputs[output], size);
  const auto work =
      has_it ? world_.endpoint.send(peer, tag, memory_of(tensor))
             : world_.endpoint.recv(peer, tag, [&](std::size_t) { return memory_of(tensor); });
  transport::await(transport::message_work(*work, world_.endpoint, peer), world_.watch,
                   {.rank = world_.rank(), .operation = "outputs of the evaluation", .step = step});
  return has_it ? at::Tensor() : tensor;
}

std::vector<LossTotal> GatheredOutputs::results(const StepLosses& losses, std::int64_t step) {
  std::string text;
  telling_others(world_, step, [&] {
    if (metrics_) text = to_text(metrics_->results(losses));
  });
  return results_of(collectives::from_first(world_, text, "metrics of the evaluation"));
}

}  // namespace trireme::train
