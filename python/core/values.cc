#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "python/core/bind.h"
#include "trireme/plan.h"

namespace trireme::python {
namespace {

void bind_graph(py::module_& module) {
  py::class_<Graph>(module, "Graph",
                    "A recorded forward pass; its form does not say how it is split.")
      .def_static("load", &Graph::load, py::arg("path"))
      .def("save", &Graph::save, py::arg("path"))
      .def("show", &Graph::show, "Its nodes for people, in the order in which they run.")
      .def_property_readonly("sha256", &Graph::sha256,
                             "Profiles and plans say of which graph they are.")
      .def_property_readonly("node_names", &Graph::node_names,
                             "In the order in which they run; cuts are given by them.")
      .def_property_readonly("allowed_cuts", &Graph::allowed_cuts,
                             "Nodes that a stage may begin with.")
      .def_property_readonly("first_uses", &Graph::first_uses,
                             "By parameter, the first node that reads it.")
      .def_property_readonly("parameter_names", &Graph::parameter_names)
      .def_property_readonly("microbatch", &Graph::microbatch,
                             "Samples of the microbatch that it was recorded with.");
}

void bind_measured(py::module_& module) {
  py::class_<Profile>(module, "Profile", "What the nodes of a graph cost on a machine.")
      .def_static("load", py::overload_cast<const std::filesystem::path&>(&Profile::load),
                  py::arg("path"))
      .def_static("load",
                  py::overload_cast<const std::filesystem::path&, const Graph&>(&Profile::load),
                  py::arg("path"), py::arg("graph"))
      .def("save", &Profile::save, py::arg("path"))
      .def("show", &Profile::show, py::arg("graph"), "A table for people: nodes by cost.")
      .def_property_readonly("graph_sha256", &Profile::graph_sha256)
      .def_property_readonly("microbatch", &Profile::microbatch)
      .def_property_readonly("forward_ms", &Profile::forward_ms, "Of a microbatch, all nodes.")
      .def_property_readonly("backward_ms", &Profile::backward_ms, "Of a microbatch, all nodes.");
  py::class_<Topology>(module, "Topology", "Ranks, their memory, and the links between them.")
      .def_static("load", &Topology::load, py::arg("path"))
      .def("save", &Topology::save, py::arg("path"))
      .def("show", &Topology::show)
      .def_property_readonly("num_ranks", &Topology::num_ranks)
      .def("memory_bytes", &Topology::memory_bytes, py::arg("rank"));
}

void bind_plan(py::module_& module) {
  py::class_<Prediction>(module, "Prediction", "What a plan's step is expected to take.")
      .def_readonly("step_ms", &Prediction::step_ms)
      .def_readonly("lower_bound_ms", &Prediction::lower_bound_ms)
      .def_readonly("peak_bytes", &Prediction::peak_bytes)
      .def_readonly("limits", &Prediction::limits);
  py::class_<Plan>(module, "Plan", "Stages, replicas and the schedule of a training.")
      .def_static("load", py::overload_cast<const std::filesystem::path&>(&Plan::load),
                  py::arg("path"))
      .def_static("load",
                  py::overload_cast<const std::filesystem::path&, const Graph&>(&Plan::load),
                  py::arg("path"), py::arg("graph"))
      .def("save", &Plan::save, py::arg("path"))
      .def("show", &Plan::show, py::arg("graph"), "A table for people: stages and what they hold.")
      .def_property_readonly("graph_sha256", &Plan::graph_sha256)
      .def_property_readonly("batch", &Plan::batch)
      .def_property_readonly("num_stages", &Plan::num_stages)
      .def_property_readonly("num_replicas", &Plan::num_replicas)
      .def_property_readonly("num_ranks", &Plan::num_ranks)
      .def_property_readonly("stage_begins", &Plan::stage_begins, "The first node of each stage.")
      .def_property_readonly("schedule", &Plan::schedule)
      .def_property_readonly("prediction", &Plan::prediction, "None where nothing was measured.");
}

}  // namespace

void bind_values(py::module_& module) {
  py::class_<BatchLayout>(module, "BatchLayout",
                          "How a step's samples are cut up: global_batch over all ranks, "
                          "microbatch of one run of a stage, lanes in "
                          "which gradients are summed (docs/concepts/equality.md).")
      .def(py::init([](std::int64_t global_batch, std::int64_t microbatch, std::int64_t lanes) {
             return BatchLayout{global_batch, microbatch, lanes};
           }),
           py::arg("global_batch"), py::arg("microbatch"), py::arg("lanes") = 1)
      .def_readwrite("global_batch", &BatchLayout::global_batch)
      .def_readwrite("microbatch", &BatchLayout::microbatch)
      .def_readwrite("lanes", &BatchLayout::lanes)
      .def_property_readonly("num_microbatches", &BatchLayout::num_microbatches);
  bind_graph(module);
  bind_measured(module);
  bind_plan(module);
  py::class_<SimulatedStep>(module, "SimulatedStep",
                            "A step of a plan by the simulator: milliseconds, of each rank "
                            "busy_ms, bytes of the fullest rank, a "
                            "timeline as a Chrome trace, text for people.")
      .def_readonly("step_ms", &SimulatedStep::step_ms)
      .def_readonly("lower_bound_ms", &SimulatedStep::lower_bound_ms)
      .def_readonly("busy_ms", &SimulatedStep::busy_ms)
      .def_readonly("peak_bytes", &SimulatedStep::peak_bytes)
      .def_readonly("text", &SimulatedStep::text)
      .def_readonly("timeline", &SimulatedStep::timeline);
  py::class_<ChangedStep>(module, "ChangedStep", "A step in which one thing is changed.")
      .def_readonly("change", &ChangedStep::change)
      .def_readonly("step_ms", &ChangedStep::step_ms)
      .def_readonly("us_per_sample", &ChangedStep::us_per_sample)
      .def_readonly("peak_bytes", &ChangedStep::peak_bytes, "Of the fullest rank.");
  py::class_<ChangedSteps>(module, "ChangedSteps",
                           "A step as it is now, and changed, the fastest first; text for people.")
      .def_readonly("now", &ChangedSteps::now)
      .def_readonly("changes", &ChangedSteps::changes)
      .def_readonly("text", &ChangedSteps::text);
  py::class_<Front>(module, "Front",
                    "Plans of which none is beaten in both step and peak, the fastest first; text "
                    "for people.")
      .def_readonly("plans", &Front::plans)
      .def_readonly("text", &Front::text);
}

}  // namespace trireme::python
