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
  py::class_<World>(module, "World", "The ranks of a run, and collectives on dense tensors.")
      .def(py::init([](std::int64_t timeout_s) {
             return std::make_unique<World>(WorldOptions{.timeout_s = timeout_s});
           }),
           py::arg("timeout_s") = 300, Unlocked())
      .def_property_readonly("rank", &World::rank)
      .def_property_readonly("size", &World::size)
      .def("all_reduce", &World::all_reduce, py::arg("tensor"), py::arg("by") = Reduction::kSum,
           Unlocked(), "In place; the same bits on all ranks.")
      .def("broadcast", &World::broadcast, py::arg("tensor"), py::arg("root") = 0, Unlocked(),
           "In place.")
      .def("all_gather", &World::all_gather, py::arg("tensor"), Unlocked(),
           "Every rank's tensor, in the order of ranks.")
      .def("barrier", &World::barrier, Unlocked(), "Waits for all ranks.")
      .def(
          "fail",
          [](World& world, const std::string& why) {
            world.fail(Error(ErrorKind::kModelFailure, why));
          },
          py::arg("why"), Unlocked(), "Ends the run on all ranks, with this reason.")
      .def("shutdown", &World::shutdown, Unlocked(), "Leaves once all ranks do.");
  module.def("is_rank", &is_rank);
  module.def("start_ranks", &start_ranks, py::arg("command"), py::arg("ranks"), Unlocked());
}

}  // namespace trireme::python
