#include "python/core/bind.h"

PYBIND11_MODULE(_core, module) {
  using namespace trireme::python;  // NOLINT(google-build-using-namespace): its parts
  module.doc() = "The engine: include/trireme for Python.";
  bind_failures(module);
  bind_world(module);
  bind_values(module);
  bind_options(module);
  bind_sources(module);
  bind_model(module);
  bind_feed(module);
  bind_records(module);
  bind_session(module);
}
