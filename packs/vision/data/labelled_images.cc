#include "packs/vision/data/labelled_images.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "trireme/base/system_error.h"
#include "trireme/data/folder_records.h"
#include "trireme/data/tar_records.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

namespace fs = std::filesystem;

constexpr std::int32_t kMostClasses = 1 << 24;
constexpr const char* kImageFields[] = {"jpg", "jpeg", "png"};

std::vector<fs::path> shards_in(const fs::path& folder) {
  std::vector<fs::path> shards;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    if (entry->path().extension() == ".tar") shards.push_back(entry->path());
  }
  if (problem) throw_system_error("list folder", folder, problem);
  std::ranges::sort(shards);
  return shards;
}

/// The digits of a class, white space around them aside.
std::optional<std::int32_t> parse_label(const std::vector<std::byte>& bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr const char* kSpace = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  text = text.substr(0, text.find_last_not_of(kSpace) + 1);
  std::int32_t label = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), label);
  const bool is_number = problem == std::errc() && end == text.data() + text.size();
  if (!is_number || label < 0 || label >= kMostClasses) return std::nullopt;
  return label;
}

class Opening {
 public:
  Opening(const data::RecordSource& records, LabelledImages& images)
      : records_(records), images_(images) {}

  void add(std::int64_t index) {
    const std::vector<std::string> fields = records_.fields(index);
    const auto has = [&](const char* name) { return std::ranges::count(fields, name) > 0; };
    const auto image = std::ranges::find_if(kImageFields, has);
    if (image == std::end(kImageFields)) refuse(index, "has no image: expected jpg, jpeg or png");
    if (!has("cls")) refuse(index, "has no class: expected a number as `cls`");
    const auto label = parse_label(records_.read(index, "cls"));
    if (!label) refuse(index, "has a class that is no number from 0 on");
    const auto count = static_cast<std::int64_t>(images_.classes.size());
    if (count > 0 && *label >= count) {
      refuse(index, "has class " + std::to_string(*label) + "; there are " + std::to_string(count) +
                        ", numbered from 0");
    }
    images_.image_fields.emplace_back(*image);
    images_.labels.push_back(*label);
  }

 private:
  [[noreturn]] void refuse(std::int64_t index, const std::string& problem) const {
    throw Error(ErrorKind::kCorruptData, records_.name(index) + " " + problem);
  }

  const data::RecordSource& records_;
  LabelledImages& images_;
};

/// The records of a folder, or of shards. Sets the classes where a folder names them.
std::shared_ptr<const data::RecordSource> open_records(const std::vector<fs::path>& paths,
                                                       std::vector<std::string>& classes) {
  if (paths.empty()) throw Error(ErrorKind::kInvalidArgument, "no images are named");
  if (!fs::is_directory(paths.front())) return std::make_shared<data::TarRecords>(paths);
  if (paths.size() > 1) {
    throw Error(ErrorKind::kInvalidArgument, "images are one folder, or tar shards; got folder '" +
                                                 paths.front().string() + "' and " +
                                                 std::to_string(paths.size() - 1) + " more");
  }
  if (const auto shards = shards_in(paths.front()); !shards.empty()) {
    return std::make_shared<data::TarRecords>(shards);
  }
  auto folder = std::make_shared<data::FolderRecords>(
      paths.front(), data::FolderRecordOptions{.classes = std::move(classes)});
  classes = folder->classes();
  return folder;
}

}  // namespace

LabelledImages open_images(const std::vector<fs::path>& paths, std::vector<std::string> classes) {
  LabelledImages images;
  images.records = open_records(paths, classes);
  images.classes = std::move(classes);
  Opening opening(*images.records, images);
  for (std::int64_t i = 0; i < images.records->num_records(); ++i) opening.add(i);
  if (images.classes.empty()) {
    const std::int32_t largest = *std::ranges::max_element(images.labels);
    for (std::int32_t k = 0; k <= largest; ++k) images.classes.push_back(std::to_string(k));
  }
  return images;
}

}  // namespace trireme::vision
