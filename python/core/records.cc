#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/core/bind.h"
#include "trireme/data.h"
#include "trireme/error.h"

namespace trireme::python {
namespace {

constexpr std::pair<const char*, data::RecordForm> kForms[] = {
    {"by_name", data::RecordForm::kByName}, {"folder", data::RecordForm::kFolder},
    {"tar", data::RecordForm::kTar},        {"json_lines", data::RecordForm::kJsonLines},
    {"csv", data::RecordForm::kCsv},        {"tfrecord", data::RecordForm::kTfrecord},
    {"mds", data::RecordForm::kMds},        {"parquet", data::RecordForm::kParquet},
    {"arrow", data::RecordForm::kArrow}};

data::RecordForm form_of(const std::string& name) {
  const auto* const found =
      std::ranges::find(kForms, name, [](const auto& form) { return std::string(form.first); });
  if (found != std::end(kForms)) return found->second;
  std::string known;
  for (const auto& form : kForms)
    known += (known.empty() ? "'" : ", '") + std::string(form.first) + "'";
  throw Error(ErrorKind::kInvalidArgument,
              "there is no form of records '" + name + "'; expected " + known);
}

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

}  // namespace

void bind_records(py::module_& module) {
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
