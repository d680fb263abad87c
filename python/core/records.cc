#include <ATen/Functions.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/core/bind.h"
#include "python/core/record_forms.h"
#include "trireme/data.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/error.h"

namespace trireme::python {
namespace {

/// A value of one character, as C++ has it.
std::optional<char> separator_of(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  if (text->size() == 1) return text->front();
  throw Error(ErrorKind::kInvalidArgument,
              "values are separated by one ASCII character, got '" + *text + "'");
}

py::bytes read(const data::RecordSource& records, std::int64_t index, const std::string& field) {
  std::vector<std::byte> bytes;
  {
    const py::gil_scoped_release unlocked;
    bytes = records.read(index, field);
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr std::pair<const char*, data::FileAccess> kAccesses[] = {
    {"by_size", data::FileAccess::kBySize},
    {"direct", data::FileAccess::kDirect},
    {"buffered", data::FileAccess::kBuffered}};

data::FileAccess access_of(const std::string& name) {
  const auto* const found = std::ranges::find(
      kAccesses, name, [](const auto& access) { return std::string(access.first); });
  if (found != std::end(kAccesses)) return found->second;
  throw Error(ErrorKind::kInvalidArgument,
              "access is 'by_size', 'direct' or 'buffered', not '" + name + "'");
}

using FixedField = std::tuple<std::string, at::ScalarType, std::vector<std::int64_t>>;

std::shared_ptr<data::Source> open_fixed_records(const std::vector<std::filesystem::path>& paths,
                                                 const std::vector<FixedField>& fields,
                                                 std::int64_t header_bytes,
                                                 const std::string& access, int num_in_flight,
                                                 std::int64_t ahead_bytes) {
  data::FixedRecordOptions options{.header_bytes = header_bytes,
                                   .access = access_of(access),
                                   .num_in_flight = num_in_flight,
                                   .ahead_bytes = ahead_bytes};
  for (const auto& [name, dtype, shape] : fields)
    options.fields.push_back({name, record::to_dtype(dtype), shape});
  return std::const_pointer_cast<data::Source>(data::open_fixed_records(paths, options));
}

/// The tensors of a sample by name, of a source whose samples are alike.
std::vector<std::pair<std::string, at::Tensor>> sample_of(const data::Source& source,
                                                          std::int64_t index, std::int64_t visit) {
  const data::Lengths lengths = source.lengths_of({index, visit});
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  std::vector<std::span<std::byte>> places;
  for (const data::Field& field : source.fields()) {
    const at::Tensor tensor =
        at::empty(field.shape_at(lengths), record::to_scalar_type(field.dtype));
    places.emplace_back(static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes());
    tensors.emplace_back(field.name, tensor);
  }
  source.read({index, visit}, places);
  return tensors;
}

}  // namespace

void bind_records(py::module_& module) {
  module.def("open_fixed_records", open_fixed_records, py::arg("paths"), py::arg("fields"),
             py::arg("header_bytes"), py::arg("access"), py::arg("num_in_flight"),
             py::arg("ahead_bytes"), Unlocked());
  module.def("sample_of", sample_of, py::arg("source"), py::arg("index"), py::arg("visit"),
             Unlocked());
  py::class_<data::RecordSource, std::shared_ptr<data::RecordSource>>(
      module, "RecordSource", "Records of files by index; their fields are bytes.")
      .def_property_readonly("num_records", &data::RecordSource::num_records)
      .def("fields", &data::RecordSource::fields, py::arg("index"), Unlocked())
      .def("read", &read, py::arg("index"), py::arg("field"))
      .def("name", &data::RecordSource::name, py::arg("index"), Unlocked())
      .def_property_readonly("identity", &data::RecordSource::identity);
  module.def(
      "open_records",
      [](const std::vector<std::filesystem::path>& paths, const std::string& form,
         std::vector<std::string> suffixes, std::vector<std::string> classes,
         std::vector<std::string> columns, const std::optional<std::string>& separator,
         bool has_quotes, std::filesystem::path unpack_folder, std::int64_t unpack_max_bytes,
         std::int64_t cache_bytes) {
        return std::const_pointer_cast<data::RecordSource>(data::open_records(
            paths, {.form = form_of(form),
                    .suffixes = std::move(suffixes),
                    .classes = std::move(classes),
                    .columns = std::move(columns),
                    .separator = separator_of(separator),
                    .has_quotes = has_quotes,
                    .unpack = {.folder = std::move(unpack_folder), .max_bytes = unpack_max_bytes},
                    .cache_bytes = cache_bytes}));
      },
      py::arg("paths"), py::arg("form"), py::arg("suffixes"), py::arg("classes"),
      py::arg("columns"), py::arg("separator"), py::arg("has_quotes"), py::arg("unpack_folder"),
      py::arg("unpack_max_bytes"), py::arg("cache_bytes"), Unlocked());
}

}  // namespace trireme::python
