#include "trireme/engine/train/verify.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <map>
#include <set>
#include <utility>

#include "trireme/engine/train/construct.h"
#include "trireme/engine/train/plain_loop.h"
#include "trireme/engine/train/rounding.h"
#include "trireme/plan/graph/json.h"
#include "trireme/plan/layout/manual.h"
#include "trireme/plan/layout/planned_graph.h"

namespace trireme::train {
namespace {

record::Recording record_training(const Workload& workload, const layout::Plan& plan,
                                  const VerifyOptions& options) {
  return record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                        {.microbatch = plan.batch.microbatch, .sizes = options.sizes});
}

/// Gradients of parameters that the recording has no use of: the executors would never train them.
void add_lost_gradients(const graph::Graph& graph, const Tensors& parameters,
                        const parameters::ParameterStore& store, Tensors& gradients) {
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
                    const VerifyOptions& options) {
  const Workload workload = construct(make_workload, options.seed);
  const record::Recording recording = record_training(workload, plan, options);
  const Session samples(workload, recording, plan, {.seed = options.seed});
  const parameters::ParameterStore& store = samples.store();
  parameters::GradientBuffers buffers = store.make_gradients();
  const auto optimizer = make_optimizer(options.optimizer);
  PlainLoop loop(workload.model, options.seed);
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
    result.gradients.push_back(gradients_of(store, buffers, has_gradient));
    add_lost_gradients(recording.graph, by_name, store, result.gradients.back());
  }
  take_state(workload, store, result);
  return result;
}

}  // namespace

RunRecord run_serial(const MakeWorkload& make_workload, const layout::Plan& plan,
                     const VerifyOptions& options) {
  const Workload workload = construct(make_workload, options.seed);
  const record::Recording recording = record_training(workload, plan, options);
  Session session(workload, recording, plan,
                  {.seed = options.seed,
                   .optimizer = options.optimizer,
                   .allow_nonfinite = true,
                   .drift_check_step = -1});
  RunRecord result;
  for (std::int64_t step = 0; step < options.num_steps; ++step) {
    result.losses.push_back(session.step().losses.total());
    const parameters::LaneAccumulator& sums = session.executor().gradients();
    result.gradients.push_back(
        gradients_of(session.store(), sums.gradients(),
                     [&](const std::string& name) { return sums.has_gradient(name); }));
  }
  take_state(workload, session.store(), result);
  return result;
}

std::vector<Comparison> verify(const MakeWorkload& make_workload, const layout::Plan& plan,
                               const VerifyOptions& options) {
  const Workload workload = construct(make_workload, options.seed);
  const record::Recording recording = record_training(workload, plan, options);
  const std::string sha256 = graph::graph_sha256(recording.graph);
  // The copies are part of the graph that the contract is about; the cuts are not.
  layout::Plan uncut = layout::make_manual_plan(layout::planned_graph(recording.graph, plan),
                                                sha256, {}, plan.batch);
  uncut.copied_nodes = plan.copied_nodes;
  const RunRecord run = run_serial(make_workload, plan, options);
  std::vector<Comparison> result(2);
  result[0].against = "uncut";
  compare(run, run_serial(make_workload, uncut, options), result[0]);
  result[1].against = "plain loop";
  result[1].must_be_bitwise = plan.batch.lanes == 1 && rounding_of(recording.graph, plan).is_none();
  if (options.optimizer.name == "sgd") result[1].weight_limit = 1e-5;
  const layout::Plan plain = layout::make_manual_plan(recording.graph, sha256, {}, plan.batch);
  compare(run, run_plain(make_workload, plain, options), result[1]);
  return result;
}

}  // namespace trireme::train
