#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "python/core/bind.h"
#include "trireme/plan.h"

namespace trireme::python {
namespace {

void bind_graph(py::module_& module) {
  py::class_<Graph>(module, "Graph")
      .def_static("load", &Graph::load, py::arg("path"))
      .def("save", &Graph::save, py::arg("path"))
      .def("show", &Graph::show)
      .def_property_readonly("sha256", &Graph::sha256)
      .def_property_readonly("node_names", &Graph::node_names)
      .def_property_readonly("allowed_cuts", &Graph::allowed_cuts)
      .def_property_readonly("first_uses", &Graph::first_uses)
      .def_property_readonly("parameter_names", &Graph::parameter_names)
      .def_property_readonly("microbatch", &Graph::microbatch);
}

void bind_measured(py::module_& module) {
  py::class_<Profile>(module, "Profile")
      .def_static("load", py::overload_cast<const std::filesystem::path&>(&Profile::load),
                  py::arg("path"))
      .def_static("load",
                  py::overload_cast<const std::filesystem::path&, const Graph&>(&Profile::load),
                  py::arg("path"), py::arg("graph"))
      .def("save", &Profile::save, py::arg("path"))
      .def("show", &Profile::show, py::arg("graph"))
      .def_property_readonly("graph_sha256", &Profile::graph_sha256)
      .def_property_readonly("microbatch", &Profile::microbatch)
      .def_property_readonly("forward_ms", &Profile::forward_ms)
      .def_property_readonly("backward_ms", &Profile::backward_ms);
  py::class_<Topology>(module, "Topology")
      .def_static("load", &Topology::load, py::arg("path"))
      .def("save", &Topology::save, py::arg("path"))
      .def("show", &Topology::show)
      .def_property_readonly("num_ranks", &Topology::num_ranks)
      .def("memory_bytes", &Topology::memory_bytes, py::arg("rank"));
}

void bind_plan(py::module_& module) {
  py::class_<Prediction>(module, "Prediction")
      .def_readonly("step_ms", &Prediction::step_ms)
      .def_readonly("lower_bound_ms", &Prediction::lower_bound_ms)
      .def_readonly("peak_bytes", &Prediction::peak_bytes)
      .def_readonly("limits", &Prediction::limits);
  py::class_<Plan>(module, "Plan")
      .def_static("load", py::overload_cast<const std::filesystem::path&>(&Plan::load),
                  py::arg("path"))
      .def_static("load",
                  py::overload_cast<const std::filesystem::path&, const Graph&>(&Plan::load),
                  py::arg("path"), py::arg("graph"))
      .def("save", &Plan::save, py::arg("path"))
      .def("show", &Plan::show, py::arg("graph"))
      .def_property_readonly("graph_sha256", &Plan::graph_sha256)
      .def_property_readonly("batch", &Plan::batch)
      .def_property_readonly("num_stages", &Plan::num_stages)
      .def_property_readonly("num_replicas", &Plan::num_replicas)
      .def_property_readonly("num_ranks", &Plan::num_ranks)
      .def_property_readonly("stage_begins", &Plan::stage_begins)
      .def_property_readonly("schedule", &Plan::schedule)
      .def_property_readonly("prediction", &Plan::prediction);
}

}  // namespace

void bind_values(py::module_& module) {
  py::class_<BatchLayout>(module, "BatchLayout")
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
  py::class_<SimulatedStep>(module, "SimulatedStep")
      .def_readonly("step_ms", &SimulatedStep::step_ms)
      .def_readonly("lower_bound_ms", &SimulatedStep::lower_bound_ms)
      .def_readonly("busy_ms", &SimulatedStep::busy_ms)
      .def_readonly("peak_bytes", &SimulatedStep::peak_bytes)
      .def_readonly("text", &SimulatedStep::text)
      .def_readonly("timeline", &SimulatedStep::timeline);
}

}  // namespace trireme::python
