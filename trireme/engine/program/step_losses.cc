#include "trireme/engine/program/step_losses.h"

#include <ATen/Functions.h>

#include <iterator>
#include <optional>

#include "trireme/engine/record/torch_terms.h"
#include "trireme/error.h"
#include "trireme/plan/graph/lengths.h"

namespace trireme::program {

StepLosses empty_losses(const graph::Graph& graph) {
  StepLosses losses;
  for (const graph::LossOutput& loss : graph.losses) {
    losses.losses.push_back({.name = loss.name, .coefficient = loss.coefficient});
  }
  return losses;
}

double sum_of(const graph::LossOutput& loss, const at::Tensor& value, std::int64_t num_samples) {
  const double number = value.item<double>();
  return loss.weight ? number : number * static_cast<double>(num_samples);
}

std::vector<double> total_weights(const graph::Graph& graph,
                                  const std::vector<std::vector<double>>& weights) {
  std::vector<double> totals(graph.losses.size());
  for (const std::vector<double>& microbatch : weights) {
    for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += microbatch[i];
  }
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (totals[i] == 0) {
      throw Error(ErrorKind::kInvalidArgument,
                  "the weights of loss '" + graph.losses[i].name +
                      "' add up to 0 over the step, so its mean is not defined");
    }
  }
  return totals;
}

std::vector<double> scaled(std::vector<double> totals, double scale) {
  for (double& total : totals) total /= scale;
  return totals;
}

void report_only(StepLosses& losses, const std::function<bool(const std::string& loss)>& counts) {
  for (LossTotal& loss : losses.losses) {
    if (!counts(loss.name)) loss.coefficient = 0;
  }
}

std::vector<double> counted(std::vector<double> totals, const graph::Graph& graph,
                            const std::function<bool(const std::string& loss)>& counts) {
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (!counts(graph.losses[i].name)) totals[i] = 0;
  }
  return totals;
}

ValueMap loss_seeds(const graph::Graph& graph, const StageProgram& stage, std::int64_t num_samples,
                    const std::vector<double>& totals) {
  ValueMap result;
  for (std::size_t i = 0; i < graph.losses.size(); ++i) {
    const graph::LossOutput& loss = graph.losses[i];
    if (loss.coefficient == 0 || totals[i] == 0 || !stage.seeds_loss(static_cast<int>(i))) continue;
    const double count = loss.weight ? 1.0 : static_cast<double>(num_samples);
    const double seed = loss.coefficient * count / totals[i];
    const at::Tensor tensor =
        at::scalar_tensor(seed, record::to_scalar_type(graph.values[loss.value].dtype));
    // A value returned as several losses gets the sum of their seeds.
    auto [known, is_new] = result.emplace(loss.value, tensor);
    if (!is_new) known->second = known->second.add(tensor);
  }
  return result;
}

namespace {

/// Samples in the fields that `batch` has; nothing where none of them grows with it.
std::optional<std::int64_t> common_samples(const graph::Graph& graph, const Batch& batch) {
  std::optional<std::int64_t> samples;
  std::string first;
  for (const graph::Input& input : graph.inputs) {
    if (input.batch_dim < 0 || !batch.has(input.name)) continue;
    const at::Tensor& tensor = batch[input.name];
    if (input.batch_dim >= tensor.dim()) {
      throw Error(ErrorKind::kInvalidArgument, "field '" + input.name + "' has no dimension " +
                                                   std::to_string(input.batch_dim) +
                                                   " for the batch");
    }
    const std::int64_t here = tensor.size(input.batch_dim);
    if (samples && here != *samples) {
      throw Error(ErrorKind::kInvalidArgument, "field '" + input.name + "' has " +
                                                   std::to_string(here) + " samples, field '" +
                                                   first + "' has " + std::to_string(*samples));
    }
    samples = here;
    first = input.name;
  }
  return samples;
}

}  // namespace

std::int64_t num_samples(const graph::Graph& graph, const Batch& batch) {
  for (const graph::Input& input : graph.inputs) batch[input.name];  // throws where it is missing
  if (const auto samples = common_samples(graph, batch)) return *samples;
  throw Error(ErrorKind::kInvalidArgument, "the recording has no input that grows with the batch");
}

namespace {

/// The fields that `batch` has are as long as the graph says; which one is not.
std::string wrong_length(const graph::Graph& graph, const Batch& batch) {
  for (const graph::Input& input : graph.inputs) {
    if (input.batch_dim < 0 || !batch.has(input.name)) continue;
    const std::vector<graph::Size>& shape = graph.values[input.value].shape;
    const at::Tensor& tensor = batch[input.name];
    if (tensor.dim() != std::ssize(shape)) return input.name;
    for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
      if (d != input.batch_dim && tensor.size(d) != shape[d].fixed) return input.name;
    }
  }
  return "";
}

}  // namespace

graph::BatchSize size_of(const graph::Graph& graph, const Batch& batch) {
  return {num_samples(graph, batch), shorter_of(graph, batch)};
}

int shorter_of(const graph::Graph& graph, const Batch& batch) {
  if (graph.shorter.empty()) return -1;
  for (int i = -1; i < static_cast<int>(graph.shorter.size()); ++i) {
    if (wrong_length(graph::at_lengths(graph, {0, i}), batch).empty()) return i;
  }
  throw Error(ErrorKind::kInvalidArgument,
              "field '" + wrong_length(graph, batch) +
                  "' of a batch is padded to a length that the model was not recorded at");
}

void require_size(const graph::Graph& graph, const Batch& batch, const graph::BatchSize& expected,
                  std::int64_t microbatch) {
  const std::optional<std::int64_t> samples = common_samples(graph, batch);
  if (samples && *samples != expected.samples) {
    throw Error(ErrorKind::kInvalidArgument,
                "microbatch " + std::to_string(microbatch) + " has " + std::to_string(*samples) +
                    " samples, the plan says " + std::to_string(expected.samples));
  }
  if (graph.shorter.empty()) return;
  const graph::Graph& at_lengths = graph::at_lengths(graph, expected);
  if (const std::string field = wrong_length(at_lengths, batch); !field.empty()) {
    throw Error(ErrorKind::kInvalidArgument, "field '" + field + "' of microbatch " +
                                                 std::to_string(microbatch) + " is not padded to " +
                                                 graph::lengths_text(at_lengths));
  }
}

}  // namespace trireme::program
