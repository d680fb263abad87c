#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trireme/engine/program/stage_program.h"
#include "trireme/engine/record/recording.h"

namespace trireme::program {

/// The losses of `graph`, nothing added yet.
StepLosses empty_losses(const graph::Graph& graph);

/// What a microbatch adds to a loss's sum: a mean counts once per sample.
double sum_of(const graph::LossOutput& loss, const at::Tensor& value, std::int64_t num_samples);

/// Weight of each loss over a step: [microbatch][loss] added in the order of microbatches.
///
/// Errors   kInvalidArgument where one is 0: its mean is not defined.
std::vector<double> total_weights(const graph::Graph& graph,
                                  const std::vector<std::vector<double>>& weights);

/// Those that do not count are no part of the step loss.
void report_only(StepLosses& losses, const std::function<bool(const std::string& loss)>& counts);

/// 0 for losses that do not count.
std::vector<double> counted(std::vector<double> totals, const graph::Graph& graph,
                            const std::function<bool(const std::string& loss)>& counts);

/// These for gradients of the loss times `scale`, a power of two: exact.
std::vector<double> scaled(std::vector<double> totals, double scale);

/// Gradients of the step loss by the values of losses that `stage` starts the backward of.
///
/// num_samples   of the microbatch.
/// totals        weight of each loss over the step; of the stage's `weighed_losses` and of means. 0: the loss has no gradient.
ValueMap loss_seeds(const graph::Graph& graph, const StageProgram& stage, std::int64_t num_samples,
                    const std::vector<double>& totals);

/// Samples in `batch`. kInvalidArgument where a field is missing or the fields disagree.
std::int64_t num_samples(const graph::Graph& graph, const Batch& batch);

/// To which lengths its samples are padded (graph::BatchSize::shorter), told by the fields' shapes.
///
/// batch    all fields.
/// Errors   kInvalidArgument where the graph holds for none such.
int shorter_of(const graph::Graph& graph, const Batch& batch);

/// Both. Errors of both.
graph::BatchSize size_of(const graph::Graph& graph, const Batch& batch);

/// kInvalidArgument where the fields that `batch` has disagree or are not of `expected` samples and lengths.
/// `microbatch` is for the message.
void require_size(const graph::Graph& graph, const Batch& batch, const graph::BatchSize& expected,
                  std::int64_t microbatch);

}  // namespace trireme::program
