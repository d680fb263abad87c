#include "trireme/model.h"

#include <c10/util/Exception.h>
#include <pybind11/stl.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/core/bind.h"
#include "python/core/failures.h"
#include "trireme/error.h"

namespace trireme::python {
namespace {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

std::vector<NamedTensor> to_named(const NamedTensors& tensors) {
  std::vector<NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back({name, tensor});
  return named;
}

py::dict to_dict(const Batch& batch) {
  py::dict fields;
  for (const auto& [name, tensor] : batch.tensors()) fields[py::str(name)] = tensor;
  return fields;
}

/// forward(batch: dict) -> list of Loss; set_training(bool); set_traced(bool); scalars: (name, function of the step).
Model make_python_model(const NamedTensors& parameters, const NamedTensors& buffers,
                        py::object forward, py::object set_training, py::object set_traced,
                        const std::vector<std::pair<std::string, py::object>>& scalars) {
  Model model;
  model.parameters = to_named(parameters);
  model.buffers = to_named(buffers);
  model.forward = [forward = Shared(std::move(forward))](const Batch& batch) {
    return in_python([&] { return forward.get()(to_dict(batch)).cast<Losses>(); });
  };
  model.set_training = [set_training = Shared(std::move(set_training))](bool training) {
    in_python([&] { set_training.get()(training); });
  };
  model.set_traced = [set_traced = Shared(std::move(set_traced))](bool traced) {
    return in_python([&] { return set_traced.get()(traced).cast<bool>(); });
  };
  for (const auto& [name, function] : scalars) {
    model.step_scalars.push_back({name, [at = Shared(function)](std::int64_t step) {
                                    return in_python([&] { return at.get()(step).cast<double>(); });
                                  }});
  }
  return model;
}

/// function(list of tensors) -> list of tensors.
Opaque make_python_opaque(std::string name, py::object function, const NamedTensors& parameters,
                          const NamedTensors& buffers) {
  auto opaque = std::make_shared<OpaqueFunction>();
  opaque->name = std::move(name);
  opaque->parameters = to_named(parameters);
  opaque->buffers = to_named(buffers);
  opaque->call = [function = Shared(std::move(function))](const TensorList& inputs) {
    return in_python([&] { return function.get()(inputs).cast<TensorList>(); });
  };
  return Opaque(std::move(opaque));
}

/// What a metric raises, which is no refusal of torch's, as a model's is.
template <typename Call>
auto in_metric(const Call& call) {
  try {
    return in_python(call);
  } catch (const c10::Error& failure) {
    throw Error(ErrorKind::kModelFailure, std::string("a metric of the evaluation failed: ") +
                                              failure.what_without_backtrace());
  }
}

/// An object with add(outputs: dict) and results() -> dict.
class PythonMetric : public Metric {
 public:
  explicit PythonMetric(py::object metric) : metric_(std::move(metric)) {}

  void add(const Batch& outputs) override {
    in_metric([&] { metric_.get().attr("add")(to_dict(outputs)); });
  }
  std::vector<std::pair<std::string, double>> results() override {
    return in_metric([&] {
      std::vector<std::pair<std::string, double>> results;
      for (const auto& [name, value] : metric_.get().attr("results")().cast<py::dict>()) {
        results.emplace_back(name.cast<std::string>(), value.cast<double>());
      }
      return results;
    });
  }

 private:
  Shared metric_;
};

/// make   () -> such an object; None: there are no metrics.
std::function<std::vector<std::unique_ptr<Metric>>()> to_metrics(py::object make) {
  if (make.is_none()) return nullptr;
  return [make = Shared(std::move(make))] {
    std::vector<std::unique_ptr<Metric>> metrics;
    in_python([&] { metrics.push_back(std::make_unique<PythonMetric>(make.get()())); });
    return metrics;
  };
}

void bind_losses(py::module_& module) {
  py::class_<Loss>(module, "Loss")
      .def_readonly("name", &Loss::name)
      .def_readonly("value", &Loss::value)
      .def_property_readonly("weight",
                             [](const Loss& loss) -> py::object {
                               if (!loss.weight.defined()) return py::none();
                               return py::cast(loss.weight);
                             })
      .def_readonly("coefficient", &Loss::coefficient);
  module.def("output", &output, py::arg("values"), py::arg("name"));
  module.def(
      "mean_loss",
      [](at::Tensor mean, std::string name, double coefficient) {
        Loss loss = mean_loss(std::move(mean), std::move(name));
        loss.coefficient = coefficient;
        return loss;
      },
      py::arg("mean"), py::arg("name") = "loss", py::arg("coefficient") = 1.0);
  module.def(
      "sum_loss",
      [](at::Tensor sum, at::Tensor weight, std::string name, double coefficient) {
        Loss loss = sum_loss(std::move(sum), std::move(weight), std::move(name));
        loss.coefficient = coefficient;
        return loss;
      },
      py::arg("sum"), py::arg("weight"), py::arg("name") = "loss", py::arg("coefficient") = 1.0);
}

}  // namespace

void bind_model(py::module_& module) {
  bind_losses(module);
  py::class_<Opaque>(module, "Opaque")
      .def(py::init(&make_python_opaque), py::arg("name"), py::arg("function"),
           py::arg("parameters"), py::arg("buffers"))
      .def("__call__", &Opaque::operator(), py::arg("inputs"), Unlocked());

  py::class_<Model>(module, "Model")
      .def(py::init(&make_python_model), py::arg("parameters"), py::arg("buffers"),
           py::arg("forward"), py::arg("set_training"), py::arg("set_traced"), py::arg("scalars"))
      .def_readwrite("recorded_by_all", &Model::recorded_by_all);

  py::class_<Workload>(module, "Workload")
      .def(
          py::init([](Model model, std::shared_ptr<data::Source> training,
                      std::optional<std::shared_ptr<data::Source>> evaluation, py::object metrics) {
            return Workload{.model = std::move(model),
                            .training = training,
                            .evaluation = evaluation.value_or(nullptr),
                            .metrics = to_metrics(std::move(metrics))};
          }),
          py::arg("model"), py::arg("training"), py::arg("evaluation") = py::none(),
          py::arg("metrics") = py::none());
}

}  // namespace trireme::python
