#include "trireme/engine/train/verify_plan.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "trireme/engine/reference/plain_loop.h"
#include "trireme/engine/reference/rounding.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/turns.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {
namespace {

using reference::gradients_of;
using reference::Keep;
using reference::owner_view;
using reference::PlainLoop;
using reference::Rounding;
using reference::rounding_of;
using reference::RunRecord;

/// Gradients of parameters that the recording has no use of: the executors would never train them.
void add_lost_gradients(const graph::Graph& graph, const reference::Tensors& parameters,
                        const parameters::ParameterStore& store, reference::Tensors& gradients) {
  const std::set<std::string> known(store.names().begin(), store.names().end());
  for (const graph::Parameter& parameter : graph.parameters) {
    const at::Tensor& gradient = parameters.at(parameter.name).grad();
    if (gradient.defined() && !known.contains(parameter.name)) {
      gradients[parameter.name] = gradient.to_dense();
    }
  }
}

/// The plain loop's optimizer works on the same flat layout, so that only gradients can differ.
RunRecord run_plain(const MakeWorkload& make_workload, const layout::Plan& plan,
                    const ComparedSteps& options, const RunWatch& watch) {
  const Workload workload = construct(make_workload, options.seed);
  const record::Recording recording =
      record_training(workload, plan.batch.microbatch, options.sizes);
  const SerialSession samples(workload, recording, plan, {.seed = options.seed});
  const parameters::ParameterStore& store = samples.store();
  parameters::GradientBuffers buffers = store.make_gradients();
  const auto optimizer = make_optimizer(options.optimizer);
  PlainLoop loop(workload.model, options.seed, counting_losses(options.optimizer));
  std::map<std::string, at::Tensor> by_name;
  for (const NamedTensor& item : workload.model.parameters) by_name[item.name] = item.tensor;
  RunRecord result;
  for (std::int64_t step = 0; step < options.num_steps; ++step) {
    result.losses.push_back(loop.run_step(step, samples.microbatches(step)).total());
    const at::NoGradGuard no_grad;
    const auto has_gradient = [&](const std::string& name) {
      return by_name.at(name).grad().defined();
    };
    for (const std::string& name : store.names()) {
      if (!has_gradient(name)) continue;
      owner_view(store, buffers, name).copy_(by_name.at(name).grad().to_dense());
    }
    update(*optimizer, store, buffers, options.optimizer, step, has_gradient);
    reference::Tensors gradients = gradients_of(store, buffers, has_gradient);
    add_lost_gradients(recording.graph, by_name, store, gradients);
    take_gradients(gradients, watch.keep, result);
    watch.after_step();
  }
  take_state(workload, store, watch.keep, result);
  return result;
}

RunRecord run_watched(const MakeWorkload& make_workload, const layout::Plan& plan,
                      const ComparedSteps& options, const RunWatch& watch) {
  const Workload workload = construct(make_workload, options.seed);
  const record::Recording recording =
      record_training(workload, plan.batch.microbatch, options.sizes);
  SerialSession session(workload, recording, plan, training_of(options));
  return record_run(session, workload, options.num_steps, watch);
}

/// Plans of the same batch without cuts, with the plan's copies and without, and what the plain
/// loop may differ in.
struct References {
  layout::Plan uncut;
  layout::Plan plain;
  Rounding rounding;
};

References references_of(const MakeWorkload& make_workload, const layout::Plan& plan,
                         const ComparedSteps& options) {
  const Workload workload = construct(make_workload, options.seed);
  const record::Recording recording =
      record_training(workload, plan.batch.microbatch, options.sizes);
  const std::string sha256 = graph::graph_sha256(recording.graph);
  // The copies are part of the graph that the contract is about; the cuts are not.
  layout::Plan uncut = layout::make_manual_plan(layout::planned_graph(recording.graph, plan),
                                                sha256, {}, plan.batch);
  uncut.copied_nodes = plan.copied_nodes;
  return {std::move(uncut), layout::make_manual_plan(recording.graph, sha256, {}, plan.batch),
          rounding_of(recording.graph, plan)};
}

}  // namespace

record::Recording record_training(const Workload& workload, std::int64_t microbatch,
                                  BatchSizes sizes) {
  return record::record(workload.model, BatchReader(workload.training, workload.model).makers(),
                        {.microbatch = microbatch, .sizes = sizes});
}

TrainingOptions training_of(const ComparedSteps& options) {
  return {.seed = options.seed,
          .optimizer = options.optimizer,
          .gradient_dtype = options.gradient_dtype,
          .allow_nonfinite = true,
          .drift_check_steps = {}};
}

RunRecord record_run(SerialSession& session, const Workload& workload, std::int64_t num_steps,
                     const RunWatch& watch) {
  RunRecord result;
  for (std::int64_t step = 0; step < num_steps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    result.losses.push_back(session.step().losses.total());
    result.step_ms.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
    const parameters::LaneAccumulator& sums = session.executor().gradients();
    take_gradients(gradients_of(session.store(), sums.gradients(),
                                [&](const std::string& name) { return sums.has_gradient(name); }),
                   watch.keep, result);
    watch.after_step();
  }
  take_state(workload, session.store(), watch.keep, result);
  return result;
}

RunRecord run_serial(const MakeWorkload& make_workload, const layout::Plan& plan,
                     const ComparedSteps& options) {
  return run_watched(make_workload, plan, options, {});
}

ReferenceRun verify_in_one_process(const MakeWorkload& make_workload, const layout::Plan& plan,
                                   const ComparedSteps& options,
                                   const std::function<void()>& after_step) {
  const References references = references_of(make_workload, plan, options);
  Comparison uncut{.against = "uncut"};
  Comparison plain{.against = "plain loop"};
  plain.must_be_bitwise = plan.batch.lanes == 1 && references.rounding.is_none();
  if (options.optimizer.name == "sgd") plain.weight_limit = 1e-5;
  const RunWatch watch{plain.must_be_bitwise ? Keep::kDigests : Keep::kTensors, after_step};
  RunRecord run = run_watched(make_workload, plan, options, watch);
  compare(run, run_watched(make_workload, references.uncut, options, {.after_step = after_step}),
          uncut);
  compare(run, run_plain(make_workload, references.plain, options, watch), plain);
  run.first_gradients.clear();
  run.last_weights.clear();
  return {std::move(run), {std::move(uncut), std::move(plain)}};
}

std::vector<Comparison> verify(const MakeWorkload& make_workload, const layout::Plan& plan,
                               const ComparedSteps& options) {
  return verify_in_one_process(make_workload, plan, options).comparisons;
}

}  // namespace trireme::train
