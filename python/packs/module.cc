#include "python/packs/bind.h"

PYBIND11_MODULE(_packs, module) {
  using namespace trireme::python;  // NOLINT(google-build-using-namespace): its parts
  module.doc() = "The packs: metrics of arrays and optimizers of tensors.";
  bind_failures(module);
  bind_coco(module);
  bind_components(module);
  bind_dice(module);
  bind_optimizers(module);
  bind_ranking(module);
  bind_sources_of_packs(module);
  bind_word_errors(module);
}
