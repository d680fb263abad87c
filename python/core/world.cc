#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

#include "python/core/bind.h"
#include "trireme/collectives.h"
#include "trireme/error.h"

namespace trireme::python {
namespace {

/// Starts `ranks` processes of the command line and waits for them: the exit code. In a process that
/// is no rank.
int start_ranks(const std::vector<std::string>& command, int ranks) {
  std::vector<const char*> words;
  for (const std::string& word : command) words.push_back(word.c_str());
  return run_ranks(static_cast<int>(words.size()), words.data(), ranks, [](World&) {});
}

}  // namespace

void bind_world(py::module_& module) {
  py::enum_<Reduction>(module, "Reduction")
      .value("SUM", Reduction::kSum)
      .value("AVERAGE", Reduction::kAverage)
      .value("MIN", Reduction::kMin)
      .value("MAX", Reduction::kMax);
  py::class_<World>(module, "World")
      .def(py::init([](std::int64_t timeout_s) {
             return std::make_unique<World>(WorldOptions{.timeout_s = timeout_s});
           }),
           py::arg("timeout_s") = 300, Unlocked())
      .def_property_readonly("rank", &World::rank)
      .def_property_readonly("size", &World::size)
      .def("all_reduce", &World::all_reduce, py::arg("tensor"), py::arg("by") = Reduction::kSum,
           Unlocked())
      .def("broadcast", &World::broadcast, py::arg("tensor"), py::arg("root") = 0, Unlocked())
      .def("all_gather", &World::all_gather, py::arg("tensor"), Unlocked())
      .def("barrier", &World::barrier, Unlocked())
      .def(
          "fail",
          [](World& world, const std::string& why) {
            world.fail(Error(ErrorKind::kModelFailure, why));
          },
          py::arg("why"), Unlocked())
      .def("shutdown", &World::shutdown, Unlocked());
  module.def("is_rank", &is_rank);
  module.def("start_ranks", &start_ranks, py::arg("command"), py::arg("ranks"), Unlocked());
}

}  // namespace trireme::python
