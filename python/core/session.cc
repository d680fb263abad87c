#include "trireme/session.h"

#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>

#include "python/core/bind.h"
#include "python/core/failures.h"

namespace trireme::python {
namespace {

/// Destroying a session waits for its threads, which may run Python or wait for a feed.
struct CloseSession {
  void operator()(Session* session) const {
    const py::gil_scoped_release unlocked;
    delete session;
  }
};
struct RecordedForward {
  RecordedEvaluation value;
};

using SessionHolder = std::unique_ptr<Session, CloseSession>;

/// make: () -> Workload, from the thread that calls, under the interpreter's lock or not.
MakeWorkload to_maker(py::object make) {
  return [make = Shared(std::move(make))] {
    return in_python([&] { return make.get()().cast<Workload>(); });
  };
}

void bind_reports(py::module_& module) {
  py::class_<LossTotal>(module, "LossTotal",
                        "One loss over a step or an evaluation; its mean is sum / weight.")
      .def_readonly("name", &LossTotal::name)
      .def_readonly("sum", &LossTotal::sum)
      .def_readonly("weight", &LossTotal::weight)
      .def_readonly("coefficient", &LossTotal::coefficient)
      .def_property_readonly("mean", &LossTotal::mean);
  py::class_<StepLosses>(module, "StepLosses",
                         "Losses of a step or an evaluation; total is what is minimised.")
      .def_readonly("losses", &StepLosses::losses)
      .def_property_readonly("total", &StepLosses::total);
  py::class_<StepReport>(module, "StepReport",
                         "What one step was: its number from 0, losses, the gradient's norm before "
                         "clipping (0 where no step needs it), seconds, of them those that waited "
                         "for samples, and processor time of this rank's stages.")
      .def_readonly("step", &StepReport::step)
      .def_readonly("losses", &StepReport::losses)
      .def_property_readonly("loss", [](const StepReport& report) { return report.losses.total(); })
      .def_readonly("microbatch_sums", &StepReport::microbatch_sums)
      .def_readonly("gradient_norm", &StepReport::gradient_norm)
      .def_readonly("loss_scale", &StepReport::loss_scale)
      .def_readonly("is_skipped", &StepReport::is_skipped)
      .def_readonly("seconds", &StepReport::seconds)
      .def_readonly("data_wait_seconds", &StepReport::data_wait_seconds)
      .def_readonly("compute_seconds", &StepReport::compute_seconds);
  py::class_<Measured>(module, "Measured", "What training took, on rank 0; lists are by rank.")
      .def_readonly("median_step_ms", &Measured::median_step_ms)
      .def_readonly("data_wait_fraction", &Measured::data_wait_fraction)
      .def_readonly("peak_bytes", &Measured::peak_bytes)
      .def_readonly("resident_peak_bytes", &Measured::resident_peak_bytes);
  py::class_<Evaluated>(module, "Evaluated", "What an evaluation found.")
      .def_readonly("losses", &Evaluated::losses)
      .def_readonly("microbatch_sums", &Evaluated::microbatch_sums);
  py::class_<RecordedForward>(module, "RecordedForward");
  py::class_<SessionEnd>(module, "SessionEnd",
                         "How a training has ended: steps done, what stopped it early, the last "
                         "checkpoint's folder, the last evaluation.")
      .def_readonly("steps_done", &SessionEnd::steps_done)
      .def_readonly("measured", &SessionEnd::measured)
      .def_readonly("stopped_by", &SessionEnd::stopped_by)
      .def_readonly("checkpoint", &SessionEnd::checkpoint)
      .def_readonly("best_checkpoint", &SessionEnd::best_checkpoint)
      .def_readonly("evaluation", &SessionEnd::evaluation);
}

void bind_training(py::module_& module) {
  py::class_<Session, SessionHolder>(module, "Session")
      .def(py::init([](World& world, py::object make, SessionOptions options) {
             MakeWorkload maker = to_maker(std::move(make));
             const py::gil_scoped_release unlocked;
             return SessionHolder(new Session(world, maker, std::move(options)));
           }),
           py::arg("world"), py::arg("make"), py::arg("options"), py::keep_alive<1, 2>())
      .def("run", &Session::run, Unlocked())
      .def("step", &Session::step, Unlocked())
      .def("run_step", &Session::run_step, Unlocked())
      .def("backward", &Session::backward, Unlocked())
      .def("gradients", &Session::gradients)
      .def("update", &Session::update, Unlocked())
      .def("evaluate", py::overload_cast<>(&Session::evaluate), Unlocked())
      .def(
          "record_evaluation",
          [](Session& session, py::object make) {
            const MakeWorkload maker = to_maker(std::move(make));
            const py::gil_scoped_release unlocked;
            return RecordedForward{session.record_evaluation(maker)};
          },
          py::arg("make"))
      .def(
          "evaluate_recorded",
          [](Session& session, const RecordedForward& recorded) {
            return session.evaluate(recorded.value);
          },
          py::arg("recorded"), Unlocked())
      .def("save", &Session::save, Unlocked())
      .def("resume", &Session::resume, py::arg("checkpoint"), Unlocked())
      .def("follow", &Session::follow, py::arg("run"), Unlocked())
      .def("finish", &Session::finish, Unlocked())
      .def("weights", &Session::weights, Unlocked())
      .def("save_weights", &Session::save_weights, py::arg("path"), Unlocked())
      .def("save_timeline", &Session::save_timeline, py::arg("path"), Unlocked())
      .def("request_stop", &Session::request_stop)
      .def("request_save", &Session::request_save)
      .def_property_readonly("stops", &Session::stops)
      .def_property_readonly("next_step", &Session::next_step)
      .def_property_readonly("is_reader", &Session::is_reader)
      .def_property_readonly("resumed_from", &Session::resumed_from)
      .def_property_readonly("plan", &Session::plan)
      .def_property_readonly("graph", &Session::graph);
}

void bind_verification(py::module_& module) {
  py::class_<Comparison>(
      module, "Comparison",
      "One training beside another of the same steps: bit-equal or not, the largest differences.")
      .def_readonly("against", &Comparison::against)
      .def_readonly("is_bitwise", &Comparison::is_bitwise)
      .def_readonly("first_difference", &Comparison::first_difference)
      .def_readonly("worst_loss", &Comparison::worst_loss)
      .def_readonly("worst_gradient", &Comparison::worst_gradient)
      .def_readonly("worst_weight", &Comparison::worst_weight)
      .def_property_readonly("passes", &Comparison::passes);
  py::class_<Verification>(
      module, "Verification",
      "A plan's training beside the uncut model, a plain loop and the stages in one process.")
      .def_readonly("plan", &Verification::plan)
      .def_readonly("comparisons", &Verification::comparisons)
      .def_property_readonly("passes", &Verification::passes);
  module.def(
      "verify_training",
      [](World& world, py::object make, std::int64_t steps, std::uint64_t seed,
         const SessionOptions& options) {
        const MakeWorkload maker = to_maker(std::move(make));
        const py::gil_scoped_release unlocked;
        return verify_training(world, maker,
                               {.num_steps = steps,
                                .seed = seed,
                                .optimizer = options.training.optimizer,
                                .plan = options.plan,
                                .planning = options.planning,
                                .batch_sizes = options.batch_sizes});
      },
      py::arg("world"), py::arg("make"), py::arg("steps"), py::arg("seed"), py::arg("options"));
}

void bind_planning(py::module_& module) {
  module.def(
      "record_graph",
      [](py::object make, std::int64_t microbatch, bool training, std::uint64_t seed,
         BatchSizes sizes) {
        const MakeWorkload maker = to_maker(std::move(make));
        const py::gil_scoped_release unlocked;
        return record_graph(maker, microbatch, training, seed, sizes);
      },
      py::arg("make"), py::arg("microbatch"), py::arg("training") = true, py::arg("seed") = 0,
      py::arg("sizes") = BatchSizes::kAnyElseExact);
  module.def(
      "measure_model",
      [](World& world, py::object make, std::int64_t microbatch, const TrainingOptions& training,
         std::int64_t device_memory_bytes, int threads) {
        const MakeWorkload maker = to_maker(std::move(make));
        const py::gil_scoped_release unlocked;
        Measurement found = measure_model(world, maker,
                                          {.microbatch = microbatch,
                                           .threads = threads,
                                           .device_memory_bytes = device_memory_bytes,
                                           .training = training});
        return std::pair(std::move(found.profile), std::move(found.topology));
      },
      py::arg("world"), py::arg("make"), py::arg("microbatch"), py::arg("training"),
      py::arg("device_memory_bytes") = 0, py::arg("threads") = 1);
  module.def(
      "make_plan",
      [](const Graph& graph, const PlanOptions& options) { return make_plan(graph, options); },
      py::arg("graph"), py::arg("options"), Unlocked());
  module.def(
      "best_plan",
      [](const Graph& graph, const Profile& profile, const Topology& topology,
         const PlanOptions& options, const TrainingOptions& training) {
        Decision decision = make_plan(graph, profile, topology, options, training);
        return std::pair(std::move(decision.plan), std::move(decision.text));
      },
      py::arg("graph"), py::arg("profile"), py::arg("topology"), py::arg("options"),
      py::arg("training"), Unlocked());
  module.def("simulate_step", &simulate_step, py::arg("plan"), py::arg("graph"), py::arg("profile"),
             py::arg("topology"), py::arg("training"), Unlocked());
  module.def("make_front", &make_front, py::arg("graph"), py::arg("profile"), py::arg("topology"),
             py::arg("options"), py::arg("training"), Unlocked());
  module.def("explain_step", &explain_step, py::arg("plan"), py::arg("graph"), py::arg("profile"),
             py::arg("topology"), py::arg("training"),
             py::arg("timeline") = std::filesystem::path(), Unlocked());
}

}  // namespace

void bind_session(py::module_& module) {
  bind_reports(module);
  bind_training(module);
  bind_planning(module);
  bind_verification(module);
}

}  // namespace trireme::python
