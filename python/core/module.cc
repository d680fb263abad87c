#include <torch/csrc/utils/pybind.h>

#include "trireme/collectives.h"
#include "trireme/error.h"

namespace py = pybind11;

PYBIND11_MODULE(_core, module) {
  module.doc() = "The engine, as include/trireme has it.";
  py::enum_<trireme::Reduction>(module, "Reduction")
      .value("SUM", trireme::Reduction::kSum)
      .value("AVERAGE", trireme::Reduction::kAverage)
      .value("MIN", trireme::Reduction::kMin)
      .value("MAX", trireme::Reduction::kMax);
  py::class_<trireme::World>(module, "World")
      .def(py::init([] { return trireme::World(); }))
      .def_property_readonly("rank", &trireme::World::rank)
      .def_property_readonly("size", &trireme::World::size);
}
