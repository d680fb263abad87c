#include <ATen/Functions.h>
#include <c10/util/Exception.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "python/core/bind.h"
#include "python/core/failures.h"
#include "trireme/data.h"
#include "trireme/error.h"
#include "trireme/model.h"

namespace trireme::python {
namespace {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Runs `call` under the interpreter's lock. What it raises as damage is kCorruptData, which data::skip_damaged may pass over.
template <typename Call>
auto in_data(const Call& call) {
  const py::gil_scoped_acquire lock;
  try {
    return call();
  } catch (py::error_already_set& failure) {
    throw_if_damaged(failure);
    throw_failure(failure);
  }
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
  /// first      fields of a sample, in the order in which `read` gives them.
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
    return in_data([&] { return lengths_of_.get()(sample.index).cast<data::Lengths>(); });
  }

  void read(data::Sample sample, std::span<const std::span<std::byte>> places) const override {
    const auto tensors = in_data(
        [&] { return read_.get()(sample.index, sample.visit).cast<std::vector<at::Tensor>>(); });
    if (tensors.size() != fields_.size()) {
      throw Error(ErrorKind::kInvalidArgument, "sample " + std::to_string(sample.index) + " has " +
                                                   std::to_string(tensors.size()) +
                                                   " fields, the first one has " +
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

std::shared_ptr<data::Source> mixed_source(
    const std::vector<std::pair<std::shared_ptr<data::Source>, std::int64_t>>& parts,
    std::uint64_t seed, bool shuffled, std::int64_t num_samples) {
  std::vector<data::MixturePart> mixed;
  for (const auto& [source, weight] : parts) mixed.push_back({source, weight});
  return std::const_pointer_cast<data::Source>(data::mix(
      std::move(mixed), {.seed = seed, .shuffled = shuffled, .num_samples = num_samples}));
}

std::shared_ptr<data::Source> packed_source(const std::shared_ptr<data::Source>& source,
                                            data::Lengths row, std::int64_t max_segments,
                                            std::int64_t open_rows) {
  return std::const_pointer_cast<data::Source>(data::pack(
      source, {.row = std::move(row), .max_segments = max_segments, .open_rows = open_rows}));
}

}  // namespace

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
  module.def("mixed_source", mixed_source, py::arg("parts"), py::arg("seed"), py::arg("shuffled"),
             py::arg("num_samples"), Unlocked());
  module.def("packed_source", packed_source, py::arg("source"), py::arg("row"),
             py::arg("max_segments"), py::arg("open_rows"), Unlocked());
  module.def(
      "skip_damaged",
      [](const std::shared_ptr<data::Source>& source, std::int64_t max_skipped,
         std::filesystem::path quarantine) {
        return std::const_pointer_cast<data::Source>(data::skip_damaged(
            source, {.max_skipped = max_skipped, .quarantine = std::move(quarantine)}));
      },
      py::arg("source"), py::arg("max_skipped"), py::arg("quarantine"));
}

}  // namespace trireme::python
