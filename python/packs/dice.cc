#include "packs/volume/metrics/dice.h"

#include <cstdint>
#include <string>
#include <vector>

#include "python/packs/bind.h"
#include "trireme/engine/operators/kernel_operator.h"
#include "trireme/error.h"

namespace trireme::python {
namespace {

using Labels = Array<std::int32_t>;

volume::VolumeView<std::int32_t> view_of(const Labels& labels) {
  if (labels.ndim() != 3) {
    throw Error(ErrorKind::kInvalidArgument,
                "dice: labels must have 3 dimensions, depth, height and width, have " +
                    std::to_string(labels.ndim()));
  }
  return {.shape = {labels.shape(0), labels.shape(1), labels.shape(2)}, .values = elements(labels)};
}

/// [num_classes] of one case.
py::array_t<double> dice(std::int64_t num_classes, const Labels& predicted, const Labels& expected,
                         double smoothing) {
  const auto prediction = view_of(predicted), truth = view_of(expected);
  const auto classes = [&] {
    const py::gil_scoped_release unlocked;
    return volume::dice_counts(num_classes, prediction, truth,
                               operators::internal::on_torch_threads);
  }();
  py::array_t<double> values(static_cast<py::ssize_t>(classes.size()));
  for (std::size_t c = 0; c < classes.size(); ++c) {
    values.mutable_at(static_cast<py::ssize_t>(c)) = classes[c].dice(smoothing);
  }
  return values;
}

}  // namespace

void bind_dice(py::module_& module) {
  module.def("dice", &dice, py::arg("num_classes"), py::arg("predicted"), py::arg("expected"),
             py::arg("smoothing"));
}

}  // namespace trireme::python
