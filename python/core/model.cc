#include "trireme/model.h"

#include <ATen/Functions.h>
#include <c10/util/Exception.h>
#include <pybind11/stl.h>

#include <cstring>
#include <functional>
#include <iterator>
#include <map>
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

/// How the lengths of samples differ; of no sample where `padded` is empty.
struct Varying {
  std::vector<data::Lengths> padded;                             ///< Source::padded_lengths.
  std::map<std::string, std::map<int, std::string>> dimensions;  ///< Field::varying, by field.
  std::map<std::string, double> padding;                         ///< By field; else 0.
  py::object lengths_of;                                         ///< index -> length by name.
};

/// Samples that Python reads: a map-style data set.
class PythonSource : public data::Source {
 public:
  /// first      fields of sample 0, in the order in which `read` gives them.
  /// read       (index, visit) -> tensors, one a field.
  PythonSource(std::int64_t num_samples, const NamedTensors& first, py::object read,
               std::string identity, Varying varying)
      : num_samples_(num_samples),
        read_(std::move(read)),
        identity_(std::move(identity)),
        padded_(std::move(varying.padded)),
        lengths_of_(std::move(varying.lengths_of)) {
    NamedTensors rows;
    for (const auto& [name, tensor] : first) rows.emplace_back(name, tensor.unsqueeze(0));
    fields_ = tensor_source(rows)->fields();
    for (data::Field& field : fields_) {
      field.varying = varying.dimensions[field.name];
      field.padding = varying.padding[field.name];
      for (const auto& [dimension, name] : field.varying) {
        const bool is_known = !padded_.empty() && padded_.back().contains(name);
        if (is_known && dimension >= 0 && dimension < std::ssize(field.shape)) {
          field.shape[dimension] = padded_.back().at(name);
        }
      }
    }
    for (const auto& [name, tensor] : first) dtypes_.push_back(tensor.scalar_type());
  }

  std::int64_t num_samples() const override { return num_samples_; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::string identity() const override { return identity_; }
  std::vector<data::Lengths> padded_lengths() const override { return padded_; }

  data::Lengths lengths_of(data::Sample sample) const override {
    if (padded_.empty()) return {};
    return in_python([&] { return lengths_of_.get()(sample.index).cast<data::Lengths>(); });
  }

  void read(data::Sample sample, std::span<const std::span<std::byte>> places) const override {
    const auto tensors = in_python(
        [&] { return read_.get()(sample.index, sample.visit).cast<std::vector<at::Tensor>>(); });
    if (tensors.size() != fields_.size()) {
      throw Error(ErrorKind::kInvalidArgument, "sample " + std::to_string(sample.index) + " has " +
                                                   std::to_string(tensors.size()) +
                                                   " fields, sample 0 has " +
                                                   std::to_string(fields_.size()));
    }
    const data::Lengths lengths = lengths_of(sample);
    for (std::size_t f = 0; f < tensors.size(); ++f) {
      copy(tensors[f], f, fields_[f].shape_at(lengths), sample.index, places[f]);
    }
  }

 private:
  void copy(const at::Tensor& tensor, std::size_t f, const std::vector<std::int64_t>& shape,
            std::int64_t index, std::span<std::byte> place) const {
    if (tensor.sizes() != at::IntArrayRef(shape) || tensor.scalar_type() != dtypes_[f]) {
      throw Error(ErrorKind::kInvalidArgument,
                  "field '" + fields_[f].name + "' of sample " + std::to_string(index) + " is " +
                      form_of(tensor) + ", expected was " + form_of(at::empty(shape, dtypes_[f])) +
                      "; samples have to be alike: pad or crop them in the data set, or say by "
                      "trireme.Padded which dimensions differ");
    }
    const at::Tensor dense = tensor.detach().cpu().contiguous();
    std::memcpy(place.data(), dense.const_data_ptr(), place.size());
  }

  static std::string form_of(const at::Tensor& tensor) {
    std::string text = std::string(c10::toString(tensor.scalar_type())) + " [";
    for (const std::int64_t size : tensor.sizes()) {
      text += (text.ends_with('[') ? "" : ", ") + std::to_string(size);
    }
    return text + "]";
  }

  std::int64_t num_samples_;
  Shared read_;
  std::string identity_;
  std::vector<data::Lengths> padded_;
  Shared lengths_of_;
  std::vector<data::Field> fields_;
  std::vector<at::ScalarType> dtypes_;
};

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

void bind_sources(py::module_& module) {
  py::class_<data::Source, std::shared_ptr<data::Source>>(module, "Source")
      .def_property_readonly("num_samples", &data::Source::num_samples)
      .def_property_readonly("reading", &data::Source::reading);
  module.def(
      "tensor_source",
      [](const NamedTensors& fields) {
        return std::const_pointer_cast<data::Source>(tensor_source(fields));
      },
      py::arg("fields"));
  module.def(
      "python_source",
      [](std::int64_t num_samples, const NamedTensors& first, py::object read, std::string identity,
         std::vector<data::Lengths> padded,
         std::map<std::string, std::map<int, std::string>> dimensions,
         std::map<std::string, double> padding,
         py::object lengths_of) -> std::shared_ptr<data::Source> {
        return std::make_shared<PythonSource>(num_samples, first, std::move(read),
                                              std::move(identity),
                                              Varying{std::move(padded), std::move(dimensions),
                                                      std::move(padding), std::move(lengths_of)});
      },
      py::arg("num_samples"), py::arg("first"), py::arg("read"), py::arg("identity"),
      py::arg("padded"), py::arg("dimensions"), py::arg("padding"), py::arg("lengths_of"));
  module.def(
      "repeated_source",
      [](const std::shared_ptr<data::Source>& source, std::int64_t times,
         std::int64_t block_samples) {
        return std::const_pointer_cast<data::Source>(
            data::repeat(source, {.times = times, .block_samples = block_samples}));
      },
      py::arg("source"), py::arg("times"), py::arg("block_samples"));
}

}  // namespace

void bind_model(py::module_& module) {
  bind_losses(module);
  bind_sources(module);
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
