#include "python/core/record_forms.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "trireme/error.h"

namespace trireme::python {
namespace {

constexpr std::pair<const char*, data::RecordForm> kForms[] = {
    {"by_name", data::RecordForm::kByName}, {"folder", data::RecordForm::kFolder},
    {"tar", data::RecordForm::kTar},        {"json_lines", data::RecordForm::kJsonLines},
    {"csv", data::RecordForm::kCsv},        {"tfrecord", data::RecordForm::kTfrecord},
    {"mds", data::RecordForm::kMds},        {"parquet", data::RecordForm::kParquet},
    {"arrow", data::RecordForm::kArrow}};

}  // namespace

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

}  // namespace trireme::python
