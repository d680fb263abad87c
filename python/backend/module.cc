// trireme._backend: what trireme.torch registers for torch.distributed.

#include <torch/csrc/utils/pybind.h>

#include <chrono>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

#include "python/backend/backend.h"
#include "python/backend/ddp_hook.h"
#include "python/backend/rank_group.h"
#include "python/backend/store_rendezvous.h"
#include "python/backend/torch_errors.h"
#include "python/backend/world.h"
#include "trireme/error.h"

namespace py = pybind11;

namespace trireme::backend {
namespace {

using std::chrono::milliseconds;

milliseconds of_seconds(double seconds) {
  return milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

std::shared_ptr<World> connect(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                               double timeout_s) {
  const CallLine line = call_line();
  try {
    StoreRendezvous rendezvous(store);
    return std::make_shared<World>(rendezvous, rank, size, of_seconds(timeout_s));
  } catch (const Error& error) {
    throw_refusal(error, line);
  }
}

c10::intrusive_ptr<Backend> make_backend(const std::string& name,
                                         const c10::intrusive_ptr<c10d::Store>& store,
                                         std::shared_ptr<World> world, std::vector<int> ranks,
                                         const std::string& group_name, double timeout_s) {
  const CallLine line = call_line();
  try {
    auto group = std::make_shared<RankGroup>(
        std::move(world), std::move(ranks),
        RankGroup::Options{.name = group_name, .timeout = of_seconds(timeout_s)});
    return c10::make_intrusive<Backend>(name, store, std::move(group));
  } catch (const Error& error) {
    throw_refusal(error, line);
  }
}

void define(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  module.doc() = "The backend of torch.distributed.";
  py::class_<World, std::shared_ptr<World>>(module, "World",
                                            "Connections to the other ranks of a job.")
      .def(py::init(&connect), py::arg("store"), py::arg("rank"), py::arg("size"),
           py::arg("timeout_s"), Unlocked())
      .def_property_readonly("rank", &World::rank)
      .def_property_readonly("size", &World::size)
      .def_property_readonly("is_open", &World::is_open)
      .def_property_readonly("is_own", &World::is_own);
  py::class_<Backend, c10d::Backend, c10::intrusive_ptr<Backend>>(module, "Backend")
      .def(py::init(&make_backend), py::arg("name"), py::arg("store"), py::arg("world"),
           py::arg("ranks"), py::arg("group_name"), py::arg("timeout_s"), Unlocked())
      .def("close", &Backend::close, "Leaves the group, and waits a second for the others at most.",
           Unlocked());
  module.def(
      "register_ddp_hook",
      [](const std::shared_ptr<c10d::Reducer>& reducer, const c10::intrusive_ptr<Backend>& backend,
         int num_lanes) { register_ddp_hook(*reducer, backend, num_lanes); },
      py::arg("reducer"), py::arg("backend"), py::arg("num_lanes"));
}

}  // namespace
}  // namespace trireme::backend

PYBIND11_MODULE(_backend, module) { trireme::backend::define(module); }
