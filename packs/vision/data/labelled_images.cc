#include "packs/vision/data/labelled_images.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/data/folder_records.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostClasses = 1 << 24;
constexpr const char* kImageFields[] = {"jpg", "jpeg", "png"};

/// White space around it aside.
std::string_view trimmed(std::string_view text) {
  constexpr const char* kSpace = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = problem == std::errc() && end == text.data() + text.size();
  return is_number ? std::optional(number) : std::nullopt;
}

class Opening {
 public:
  Opening(const ImageFileOptions& options, LabelledImages& images)
      : options_(options), images_(images), records_(*images.records) {}

  void add(std::int64_t index) {
    images_.image_fields.push_back(image_field(index));
    images_.labels.push_back(label(index));
  }

 private:
  std::string image_field(std::int64_t index) const {
    if (!options_.image_field.empty()) return options_.image_field;
    const std::vector<std::string> fields = records_.fields(index);
    const auto has = [&](const std::string& name) { return std::ranges::count(fields, name) > 0; };
    const auto image = std::ranges::find_if(kImageFields, has);
    if (image == std::end(kImageFields)) refuse(index, "has no image: expected jpg, jpeg or png");
    if (!has(options_.label_field)) {
      refuse(index, "has no class: expected a number as `" + options_.label_field + "`");
    }
    return *image;
  }

  std::int32_t label(std::int64_t index) const {
    const std::vector<std::byte> bytes = records_.read(index, options_.label_field);
    const std::string text =
        options_.label_form == LabelForm::kText ? text_of(index, bytes) : digits_of(index, bytes);
    const auto& classes = images_.classes;
    const auto number = parse_number(text);
    if (!number) {
      const auto named = std::ranges::find(classes, text);
      if (named != classes.end()) return static_cast<std::int32_t>(named - classes.begin());
    }
    if (!number || *number < 0 || *number >= kMostClasses) {
      refuse(index, "has class '" + text.substr(0, 80) + "' as `" + options_.label_field +
                        "`, which is no number from 0 on, and no name of the " +
                        std::to_string(classes.size()) + " classes that are given");
    }
    if (!classes.empty() && *number >= std::ssize(classes)) {
      refuse(index, "has class " + std::to_string(*number) + " as `" + options_.label_field +
                        "`; there are " + std::to_string(classes.size()) + ", numbered from 0");
    }
    return static_cast<std::int32_t>(*number);
  }

  std::string text_of(std::int64_t index, const std::vector<std::byte>& bytes) const {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (options_.label_key.empty()) return std::string(trimmed(text));
    const Json json = parse_json(text, options_.label_field + " of " + records_.name(index));
    const auto value = json.is_object() ? json.find(options_.label_key) : json.end();
    if (value == json.end()) {
      refuse(index, "has no class: expected a JSON object with '" + options_.label_key + "' as `" +
                        options_.label_field + "`");
    }
    return value->is_string() ? value->get<std::string>() : compact_text(*value);
  }

  std::string digits_of(std::int64_t index, const std::vector<std::byte>& bytes) const {
    std::int64_t number = 0;
    if (bytes.size() != sizeof number) {
      refuse(index, "has a class of " + std::to_string(bytes.size()) + " bytes as `" +
                        options_.label_field + "`; expected 8, an i64");
    }
    std::memcpy(&number, bytes.data(), sizeof number);
    return std::to_string(number);
  }

  [[noreturn]] void refuse(std::int64_t index, const std::string& problem) const {
    throw Error(ErrorKind::kCorruptData, records_.name(index) + " " + problem);
  }

  const ImageFileOptions& options_;
  LabelledImages& images_;
  const data::RecordSource& records_;
};

/// The numbers from 0 to the largest label, where nobody has named the classes. Without gaps, so that a label that is wrong is
/// no model with a million outputs; but 0 may be missing, as where labels are counted from 1.
std::vector<std::string> numbered_classes(const LabelledImages& images) {
  const std::set<std::int32_t> met(images.labels.begin(), images.labels.end());
  std::int32_t next = 1;
  while (met.contains(next)) ++next;
  const auto is_beyond = [next](std::int32_t label) { return label > next; };
  const auto beyond = std::ranges::find_if(images.labels, is_beyond);
  if (beyond != images.labels.end()) {
    throw Error(ErrorKind::kCorruptData,
                images.records->name(beyond - images.labels.begin()) + " has class " +
                    std::to_string(*beyond) + ", but no record has class " + std::to_string(next) +
                    ": " + std::to_string(std::ranges::count_if(images.labels, is_beyond)) +
                    " of " + std::to_string(images.labels.size()) +
                    " records are beyond it; expected numbers without gaps. Correct the label, or "
                    "give a list of the classes");
  }
  std::vector<std::string> classes;
  for (std::int32_t k = 0; k <= *met.rbegin(); ++k) classes.push_back(std::to_string(k));
  return classes;
}

}  // namespace

std::vector<std::string> read_class_names(const fs::path& file) {
  std::vector<std::string> names;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    names.emplace_back(trimmed(line));
    if (!names.back().empty()) continue;
    throw Error(ErrorKind::kInvalidArgument, "'" + file.string() + "' has no name in line " +
                                                 std::to_string(names.size()) +
                                                 "; expected that of a class in each");
  }
  if (!names.empty()) return names;
  throw Error(ErrorKind::kInvalidArgument,
              "'" + file.string() + "' is empty; expected the name of a class in each line");
}

LabelledImages open_images(const std::vector<fs::path>& paths, const ImageFileOptions& options) {
  LabelledImages images{
      .records = data::open_records(paths, {.form = options.form, .classes = options.classes}),
      .classes = options.classes};
  if (const auto* folder = dynamic_cast<const data::FolderRecords*>(images.records.get())) {
    images.classes = folder->classes();
  }
  Opening opening(options, images);
  for (std::int64_t i = 0; i < images.records->num_records(); ++i) opening.add(i);
  if (images.classes.empty()) images.classes = numbered_classes(images);
  return images;
}

}  // namespace trireme::vision
