#include <pybind11/functional.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <functional>
#include <optional>

#include "python/core/bind.h"
#include "python/core/failures.h"
#include "trireme/plan.h"
#include "trireme/session.h"

namespace trireme::python {

namespace {

void bind_choices(py::module_& module) {
  py::enum_<Objective>(module, "Objective")
      .value("SPEED", Objective::kSpeed)
      .value("MEMORY", Objective::kMemory)
      .value("COST", Objective::kCost);
  py::enum_<Balance>(module, "Balance")
      .value("SEARCH", Balance::kSearch)
      .value("UNIFORM", Balance::kUniform)
      .value("PARAMETERS", Balance::kParameters)
      .value("TREE", Balance::kTree);
  py::enum_<ReplicaPolicy>(module, "ReplicaPolicy")
      .value("FIRST", ReplicaPolicy::kFirst)
      .value("AVERAGE", ReplicaPolicy::kAverage)
      .value("SUM", ReplicaPolicy::kSum);
  py::enum_<BatchSizes>(module, "BatchSizes")
      .value("ANY", BatchSizes::kAny)
      .value("EXACT", BatchSizes::kExact)
      .value("ANY_ELSE_EXACT", BatchSizes::kAnyElseExact);
  py::enum_<Offload>(module, "Offload")
      .value("NONE", Offload::kNone)
      .value("AUTO", Offload::kAuto)
      .value("ALL", Offload::kAll);
  py::enum_<Recompute>(module, "Recompute")
      .value("AUTO", Recompute::kAuto)
      .value("NONE", Recompute::kNone)
      .value("ALL", Recompute::kAll)
      .value("REGIONS", Recompute::kRegions);
  py::enum_<Dtype>(module, "GradientDtype").value("F32", Dtype::kF32).value("BF16", Dtype::kBf16);
  py::enum_<CheckpointWrites>(module, "CheckpointWrites")
      .value("AUTO", CheckpointWrites::kAuto)
      .value("WAIT", CheckpointWrites::kWait)
      .value("BESIDE", CheckpointWrites::kBeside);
  py::enum_<CheckpointErrors>(module, "CheckpointErrors")
      .value("STOP", CheckpointErrors::kStop)
      .value("CONTINUE", CheckpointErrors::kContinue);
  py::enum_<Placement>(module, "Placement")
      .value("SPREAD", Placement::kSpread)
      .value("CLUSTER", Placement::kCluster);
}

namespace {

void bind_optimizer_options(py::module_& module) {
  py::class_<ParameterGroup>(
      module, "ParameterGroup",
      "Parameters with names like a pattern: a weight decay of their own, a scale of the rate.")
      .def(py::init([](std::string names, std::optional<double> weight_decay, double scale) {
             return ParameterGroup{std::move(names), weight_decay, scale};
           }),
           py::arg("names"), py::arg("weight_decay") = std::nullopt,
           py::arg("learning_rate_scale") = 1.0)
      .def_readwrite("names", &ParameterGroup::names)
      .def_readwrite("weight_decay", &ParameterGroup::weight_decay)
      .def_readwrite("learning_rate_scale", &ParameterGroup::learning_rate_scale);
  py::class_<Turn>(module, "Turn",
                   "Steps in which losses of these names count and parameters with names like "
                   "these patterns move.")
      .def(py::init<std::vector<std::string>, std::vector<std::string>, std::int64_t>(),
           py::arg("parameters"), py::arg("losses"), py::arg("num_steps") = 1)
      .def_readwrite("parameters", &Turn::parameters)
      .def_readwrite("losses", &Turn::losses)
      .def_readwrite("num_steps", &Turn::num_steps);
  py::class_<OptimizerOptions>(
      module, "OptimizerOptions",
      "name: sgd, adamw, ... or own; weight_decay outside the gradient; clip_norm 0: none.")
      .def(py::init<>())
      .def_readwrite("name", &OptimizerOptions::name)
      .def_readwrite("learning_rate", &OptimizerOptions::learning_rate)
      .def_readwrite("warmup_steps", &OptimizerOptions::warmup_steps)
      .def_readwrite("decay", &OptimizerOptions::decay)
      .def_readwrite("hold_steps", &OptimizerOptions::hold_steps)
      .def_readwrite("decay_steps", &OptimizerOptions::decay_steps)
      .def_readwrite("decay_power", &OptimizerOptions::decay_power)
      .def_readwrite("final_rate", &OptimizerOptions::final_rate)
      .def_readwrite("rate_schedule", &OptimizerOptions::rate_schedule)
      .def_readwrite("momentum", &OptimizerOptions::momentum)
      .def_readwrite("weight_decay", &OptimizerOptions::weight_decay)
      .def_readwrite("beta1", &OptimizerOptions::beta1)
      .def_readwrite("beta2", &OptimizerOptions::beta2)
      .def_readwrite("epsilon", &OptimizerOptions::epsilon)
      .def_readwrite("groups", &OptimizerOptions::groups)
      .def_readwrite("turns", &OptimizerOptions::turns)
      .def_readwrite("clip_norm", &OptimizerOptions::clip_norm)
      .def_readwrite("average_decay", &OptimizerOptions::average_decay);
}

}  // namespace

void bind_training_options(py::module_& module) {
  bind_optimizer_options(module);
  py::class_<TrainingOptions>(
      module, "TrainingOptions",
      "seed of random numbers and of the order of samples; buffers: what replicas do with theirs.")
      .def(py::init<>())
      .def_readwrite("seed", &TrainingOptions::seed)
      .def_readwrite("shuffled", &TrainingOptions::shuffled)
      .def_readwrite("optimizer", &TrainingOptions::optimizer)
      .def_readwrite("buffers", &TrainingOptions::buffers)
      .def_property(
          "loss_scale", [](const TrainingOptions& o) { return o.loss_scale.initial; },
          [](TrainingOptions& o, double initial) { o.loss_scale.initial = initial; })
      .def_property(
          "loss_scale_steps", [](const TrainingOptions& o) { return o.loss_scale.growth_steps; },
          [](TrainingOptions& o, std::int64_t steps) { o.loss_scale.growth_steps = steps; })
      .def_readwrite("gradient_dtype", &TrainingOptions::gradient_dtype)
      .def_readwrite("tolerant", &TrainingOptions::tolerant)
      .def_readwrite("allow_nonfinite", &TrainingOptions::allow_nonfinite)
      .def_readwrite("evaluate_average", &TrainingOptions::evaluate_average)
      .def_readwrite("drift_check_steps", &TrainingOptions::drift_check_steps)
      .def_readwrite("capture", &TrainingOptions::capture)
      .def_readwrite("offload_folder", &TrainingOptions::offload_folder)
      .def_readwrite("reader_threads", &TrainingOptions::reader_threads);
}

void bind_plan_options(py::module_& module) {
  py::class_<PlanOptions>(
      module, "PlanOptions",
      "Stages and replicas (0: as many as are best), cuts by node name, the objective.")
      .def(py::init<>())
      .def_readwrite("batch", &PlanOptions::batch)
      .def_readwrite("threads", &PlanOptions::threads)
      .def_readwrite("stages", &PlanOptions::stages)
      .def_readwrite("stages_per_rank", &PlanOptions::stages_per_rank)
      .def_readwrite("replicas", &PlanOptions::replicas)
      .def_readwrite("placement", &PlanOptions::placement)
      .def_readwrite("recompute", &PlanOptions::recompute)
      .def_readwrite("offload", &PlanOptions::offload)
      .def_readwrite("shard_state", &PlanOptions::shard_state)
      .def_readwrite("shard_parameters", &PlanOptions::shard_parameters)
      .def_readwrite("schedule", &PlanOptions::schedule)
      .def_readwrite("schedule_file", &PlanOptions::schedule_file)
      .def_readwrite("cuts", &PlanOptions::cuts)
      .def_readwrite("active_microbatches", &PlanOptions::active_microbatches)
      .def_readwrite("stage_of", &PlanOptions::stage_of)
      .def_readwrite("balance", &PlanOptions::balance)
      .def_readwrite("copies", &PlanOptions::copies)
      .def_readwrite("objective", &PlanOptions::objective)
      .def_readwrite("max_slowdown", &PlanOptions::max_slowdown)
      .def_readwrite("device_memory_bytes", &PlanOptions::device_memory_bytes)
      .def_readwrite("may_copy", &PlanOptions::may_copy)
      .def_readwrite("may_idle", &PlanOptions::may_idle)
      .def_readwrite("may_join", &PlanOptions::may_join)
      .def_readwrite("may_reorder", &PlanOptions::may_reorder);
}

/// A property that takes a function or None, which rank 0 calls; reads as None.
template <typename... Arguments>
void bind_callback(py::class_<SessionOptions>& options, const char* name,
                   std::function<void(Arguments...)> SessionCallbacks::* callback) {
  options.def_property(
      name, [](const SessionOptions&) { return std::optional<py::function>(); },
      [callback](SessionOptions& self, std::optional<py::function> function) {
        if (!function) {
          self.callbacks.*callback = nullptr;
          return;
        }
        self.callbacks.*callback = [function = Shared(*function)](Arguments... arguments) {
          in_python([&] { function.get()(arguments...); });
        };
      });
}

void bind_session_options(py::module_& module) {
  py::class_<RunOptions>(
      module, "RunOptions",
      "The folder that a run is kept in, and how often checkpoints and evaluations come, in steps.")
      .def(py::init<>())
      .def_readwrite("folder", &RunOptions::folder)
      .def_readwrite("resume", &RunOptions::resume)
      .def_readwrite("checkpoint_every", &RunOptions::checkpoint_every)
      .def_readwrite("keep_last", &RunOptions::keep_last)
      .def_readwrite("keep_best", &RunOptions::keep_best)
      .def_readwrite("best_by", &RunOptions::best_by)
      .def_readwrite("best_is_most", &RunOptions::best_is_most)
      .def_readwrite("patience", &RunOptions::patience)
      .def_readwrite("target", &RunOptions::target)
      .def_readwrite("checkpoint_writes", &RunOptions::checkpoint_writes)
      .def_readwrite("checkpoint_errors", &RunOptions::checkpoint_errors)
      .def_readwrite("evaluate_every", &RunOptions::evaluate_every)
      .def_readwrite("evaluates_elsewhere", &RunOptions::evaluates_elsewhere);
  py::class_<SessionOptions> options(
      module, "SessionOptions",
      "The same on every rank, but for callbacks, which rank 0 is told by.");
  options.def(py::init<>())
      .def_readwrite("model", &SessionOptions::model)
      .def_readwrite("num_steps", &SessionOptions::num_steps)
      .def_readwrite("training", &SessionOptions::training)
      .def_readwrite("plan", &SessionOptions::plan)
      .def_readwrite("planning", &SessionOptions::planning)
      .def_readwrite("measures", &SessionOptions::measures)
      .def_readwrite("profile", &SessionOptions::profile)
      .def_readwrite("topology", &SessionOptions::topology)
      .def_readwrite("run", &SessionOptions::run)
      .def_readwrite("metrics_file", &SessionOptions::metrics_file)
      .def_readwrite("batch_sizes", &SessionOptions::batch_sizes)
      .def_readwrite("reader_ranks", &SessionOptions::reader_ranks)
      .def_readwrite("deferred_init", &SessionOptions::deferred_init)
      .def_readwrite("first_step_check", &SessionOptions::first_step_check)
      .def_readwrite("serial", &SessionOptions::serial)
      .def_readwrite("handles_signals", &SessionOptions::handles_signals);
  bind_callback(options, "on_step", &SessionCallbacks::on_step);
  bind_callback(options, "on_evaluation", &SessionCallbacks::on_evaluation);
  bind_callback(options, "on_checkpoint", &SessionCallbacks::on_checkpoint);
  bind_callback(options, "on_phase", &SessionCallbacks::on_phase);
}

}  // namespace

void bind_options(py::module_& module) {
  bind_choices(module);
  bind_training_options(module);
  bind_plan_options(module);
  bind_session_options(module);
}

}  // namespace trireme::python
