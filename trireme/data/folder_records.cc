#include "trireme/data/folder_records.h"

#include <algorithm>
#include <cctype>
#include <system_error>

#include "trireme/base/files.h"
#include "trireme/base/sha256.h"
#include "trireme/base/system_error.h"
#include "trireme/data/named_read.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLabelField = "cls";

std::string in_small_letters(std::string text) {
  for (char& letter : text) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

bool is_hidden(const fs::path& path) { return path.filename().native().starts_with('.'); }

/// Names of what is directly in `folder`, sorted; folders alone.
std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    if (std::error_code ignored; !is_hidden(entry->path()) && entry->is_directory(ignored)) {
      names.push_back(entry->path().filename().string());
    }
  }
  if (problem) throw_system_error("list folder", folder, problem);
  std::ranges::sort(names);
  return names;
}

std::string ending_of(const std::string& path) {
  const std::string ending = in_small_letters(fs::path(path).extension().string());
  return ending.empty() ? ending : ending.substr(1);
}

}  // namespace

FolderRecords::FolderRecords(fs::path folder, FolderRecordOptions options)
    : folder_(std::move(folder)), classes_(std::move(options.classes)) {
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorKind::kInvalidArgument, "folder '" + folder_.string() + "' " + problem);
  };
  if (!fs::is_directory(folder_)) refuse("is not there, or is no folder");
  const std::vector<std::string> found = folders_in(folder_);
  if (found.empty()) refuse("has no folders; expected one for each class");
  if (classes_.empty()) classes_ = found;
  for (const std::string& name : found) {
    const auto at = std::ranges::find(classes_, name);
    if (at == classes_.end()) {
      refuse("has class '" + name + "', which is not among the " + std::to_string(classes_.size()) +
             " that are expected");
    }
    const std::size_t before = records_.size();
    add_class(name, static_cast<std::int32_t>(at - classes_.begin()), options.suffixes);
    if (records_.size() > before) continue;
    std::string endings;
    for (const std::string& suffix : options.suffixes) endings += " " + suffix;
    refuse("has no files of class '" + name + "' that end in one of" + endings);
  }
  std::ranges::stable_sort(records_, {}, &Record::label);
}

void FolderRecords::add_class(const std::string& name, std::int32_t label,
                              const std::vector<std::string>& suffixes) {
  const std::size_t begin = records_.size();
  std::error_code problem;
  using Walk = fs::recursive_directory_iterator;
  for (Walk entry(folder_ / name, fs::directory_options::follow_directory_symlink, problem), end;
       !problem && entry != end; entry.increment(problem)) {
    if (is_hidden(entry->path())) {
      entry.disable_recursion_pending();
      continue;
    }
    const std::string file = in_small_letters(entry->path().filename().string());
    const auto ends_so = [&](const std::string& suffix) { return file.ends_with(suffix); };
    if (!std::ranges::any_of(suffixes, ends_so) || !entry->is_regular_file(problem)) continue;
    records_.push_back({.path = entry->path().lexically_relative(folder_).string(),
                        .bytes = static_cast<std::int64_t>(entry->file_size(problem)),
                        .label = label});
    if (problem) throw_system_error("inspect", entry->path(), problem);
  }
  if (problem) throw_system_error("list folder", folder_ / name, problem);
  std::ranges::sort(records_.begin() + static_cast<std::ptrdiff_t>(begin), records_.end(), {},
                    &Record::path);
}

const FolderRecords::Record& FolderRecords::record(std::int64_t index) const {
  if (index < 0 || index >= num_records()) {
    throw Error(ErrorKind::kInvalidArgument, "folder '" + folder_.string() +
                                                 "': there is no record " + std::to_string(index) +
                                                 " among " + std::to_string(num_records()));
  }
  return records_[static_cast<std::size_t>(index)];
}

std::vector<std::string> FolderRecords::fields(std::int64_t index) const {
  return {ending_of(record(index).path), std::string(kLabelField)};
}

std::vector<std::byte> FolderRecords::read(std::int64_t index, std::string_view field) const {
  const Record& one = record(index);
  if (field == kLabelField) {
    const std::string label = std::to_string(one.label);
    const auto bytes = std::as_bytes(std::span(label));
    return {bytes.begin(), bytes.end()};
  }
  if (field != ending_of(one.path)) {
    throw Error(ErrorKind::kInvalidArgument,
                name(index) + " has no field '" + std::string(field) + "'");
  }
  return read_for(*this, index, field, [&] { return read_file_bytes(folder_ / one.path); });
}

std::string FolderRecords::name(std::int64_t index) const {
  return "'" + (folder_ / record(index).path).string() + "'";
}

std::string FolderRecords::identity() const {
  Sha256 hash;
  const auto add = [&](const std::string& text) { hash.add(std::as_bytes(std::span(text))); };
  add("folder of records\n");
  for (const std::string& name : classes_) add(std::to_string(name.size()) + " " + name + "\n");
  for (const Record& one : records_) {
    add(std::to_string(one.path.size()) + " " + one.path + " " + std::to_string(one.bytes) + " " +
        std::to_string(one.label) + "\n");
  }
  return hash.finish();
}

}  // namespace trireme::data
