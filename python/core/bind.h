#pragma once

#include <torch/csrc/utils/pybind.h>

namespace trireme::python {

namespace py = pybind11;

/// Each adds a part of include/trireme to the module.
void bind_failures(py::module_& module);
void bind_world(py::module_& module);
void bind_values(py::module_& module);
void bind_options(py::module_& module);
void bind_model(py::module_& module);
void bind_feed(py::module_& module);
void bind_records(py::module_& module);
void bind_session(py::module_& module);
void bind_sources(py::module_& module);

/// For what may wait for other ranks or compute for long: others may run Python meanwhile.
using Unlocked = py::call_guard<py::gil_scoped_release>;

}  // namespace trireme::python
