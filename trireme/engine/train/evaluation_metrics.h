#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "trireme/engine/pipeline/stage_worker.h"
#include "trireme/engine/program/stage_program.h"
#include "trireme/model.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::train {

/// Refuses a workload with metrics whose graph gives no outputs for them: kInvalidArgument.
void check_metrics(const Workload& workload, const graph::Graph& graph);

/// The metrics of one evaluation, on the rank that keeps them.
class EvaluationMetrics {
 public:
  explicit EvaluationMetrics(const Workload& workload) : metrics_(workload.metrics()) {}

  /// Outputs of the next samples.
  void add(const Batch& outputs);

  /// Results as losses that are only reported.
  ///
  /// losses   of the evaluation, whose names are taken.
  /// Errors   kModelFailure where a result is not finite, or a name is taken.
  std::vector<LossTotal> results(const StepLosses& losses);

 private:
  std::vector<std::unique_ptr<Metric>> metrics_;
};

/// Outputs of an evaluation by ranks: kept where they are made, and brought to the metrics on the first rank, in the order
/// of samples.
///
/// Memory   the outputs of the microbatches between two `gather`s.
class GatheredOutputs {
 public:
  /// world, workload, graph, plan   outlive this; the plan's cuts are those of the graph.
  GatheredOutputs(const collectives::World& world, const Workload& workload,
                  const graph::Graph& graph, const layout::Plan& plan);

  /// Those of a stage, for a microbatch of the evaluation whose forward is done.
  ///
  /// batch   has all fields, where an output is one.
  void keep(const program::StageProgram& stage, std::int64_t microbatch, const Batch& batch,
            const std::function<at::Tensor(graph::ValueId)>& made);

  /// Hands over those of a microbatch. Every rank calls it for every microbatch, in order.
  ///
  /// replica   that has the microbatch.
  void gather(std::int64_t microbatch, int replica, const graph::BatchSize& size,
              std::int64_t step);

  /// Of all metrics, on every rank, which all call it. Errors of EvaluationMetrics::results.
  std::vector<LossTotal> results(const StepLosses& losses, std::int64_t step);

 private:
  at::Tensor bring(std::int64_t microbatch, int output, int from, const graph::BatchSize& size,
                   std::int64_t step);

  const collectives::World& world_;
  const graph::Graph& graph_;
  const layout::Plan& plan_;
  std::unique_ptr<EvaluationMetrics> metrics_;              ///< On the first rank.
  std::vector<int> stages_;                                 ///< By output.
  std::map<std::int64_t, std::map<int, at::Tensor>> kept_;  ///< By microbatch and output.
  std::uint64_t num_messages_ = 0;
};

}  // namespace trireme::train
