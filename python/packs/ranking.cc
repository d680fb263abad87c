#include <vector>

#include "packs/ranking/metrics/log_loss.h"
#include "packs/ranking/metrics/roc_auc.h"
#include "python/packs/bind.h"
#include "trireme/engine/operators/kernel_operator.h"

namespace trireme::python {
namespace {

double roc_auc(const Array<float>& scores, const Array<std::uint8_t>& labels) {
  const auto given = elements(scores);
  const auto classes = elements(labels);
  const py::gil_scoped_release unlocked;
  std::vector<float> sorted(given.begin(), given.end());
  return ranking::roc_auc(sorted, classes, operators::internal::on_torch_threads);
}

template <typename T>
ranking::LogLoss log_loss(const Array<T>& probabilities, const Array<std::uint8_t>& labels) {
  const auto given = elements(probabilities);
  const auto classes = elements(labels);
  const py::gil_scoped_release unlocked;
  return ranking::log_loss(given, classes, operators::internal::on_torch_threads);
}

}  // namespace

void bind_ranking(py::module_& module) {
  using ranking::LogLoss;
  py::class_<LogLoss>(module, "LogLoss")
      .def_readonly("sum", &LogLoss::sum)
      .def_readonly("num_samples", &LogLoss::num_samples)
      .def_readonly("num_positives", &LogLoss::num_positives)
      .def_property_readonly("mean", &LogLoss::mean)
      .def_property_readonly("normalized_entropy", &LogLoss::normalized_entropy)
      .def(
          "__add__", [](LogLoss sum, const LogLoss& other) { return sum += other; },
          py::arg("other"));
  module.def("roc_auc", &roc_auc, py::arg("scores"), py::arg("labels"));
  module.def("log_loss_f32", &log_loss<float>, py::arg("probabilities"), py::arg("labels"));
  module.def("log_loss_f64", &log_loss<double>, py::arg("probabilities"), py::arg("labels"));
}

}  // namespace trireme::python
