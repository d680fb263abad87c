#include "packs/text/data/file_list.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "trireme/error.h"

namespace trireme::text {
namespace {

namespace fs = std::filesystem;

/// The walk over all inputs.
class Walk {
 public:
  explicit Walk(std::span<const std::string> suffixes) : suffixes_(suffixes) {}

  void add_input(const fs::path& input) {
    const auto status = inspect(input);
    if (!status) {
      throw Error(ErrorKind::kInvalidArgument, "cannot read text from '" + input.string() +
                                                   "': " + std::generic_category().message(errno));
    }
    add(input, *status);
  }

  FileList finish() {
    list_.report.files = static_cast<std::int64_t>(list_.files.size());
    return std::move(list_);
  }

 private:
  using Status = struct stat;

  /// Nothing, and errno, where it cannot be read; only files and folders are.
  static std::optional<Status> inspect(const fs::path& path) {
    Status status{};
    if (::stat(path.c_str(), &status) != 0) return std::nullopt;
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
      errno = EINVAL;
      return std::nullopt;
    }
    const int access = S_ISDIR(status.st_mode) ? R_OK | X_OK : R_OK;
    if (::access(path.c_str(), access) != 0) return std::nullopt;
    return status;
  }

  void add(const fs::path& path, const Status& status) {
    if (!met_.insert({status.st_dev, status.st_ino}).second) return;
    if (S_ISDIR(status.st_mode)) {
      for (const fs::path& name : names_in(path)) add_entry(path, name);
    } else {
      list_.files.push_back(
          {path, status.st_size,
           std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec});
    }
  }

  void add_entry(const fs::path& folder, const fs::path& name) {
    const fs::path path = folder / name;
    if (name.native().starts_with('.')) {
      ++list_.report.hidden;
      return;
    }
    const auto status = inspect(path);
    if (!status) {
      ++list_.report.unreadable;
    } else if (S_ISREG(status->st_mode) && !is_wanted(path)) {
      ++list_.report.filtered;
    } else {
      add(path, *status);
    }
  }

  static std::vector<fs::path> names_in(const fs::path& folder) {
    std::vector<fs::path> names;
    std::error_code problem;
    fs::directory_iterator entry(folder, problem);
    for (; !problem && entry != fs::directory_iterator(); entry.increment(problem)) {
      names.push_back(entry->path().filename());
    }
    if (problem) {
      throw Error(ErrorKind::kIo,
                  "cannot list folder '" + folder.string() + "': " + problem.message());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  bool is_wanted(const fs::path& path) const {
    const std::string name = path.filename().string();
    return suffixes_.empty() ||
           std::any_of(suffixes_.begin(), suffixes_.end(),
                       [&](const std::string& suffix) { return name.ends_with(suffix); });
  }

  std::span<const std::string> suffixes_;
  std::set<std::pair<dev_t, ino_t>> met_;
  FileList list_;
};

}  // namespace

FileList list_files(std::span<const fs::path> inputs, std::span<const std::string> suffixes) {
  if (inputs.empty()) {
    throw Error(ErrorKind::kInvalidArgument, "no text was given: name files or folders");
  }
  Walk walk(suffixes);
  for (const fs::path& input : inputs) walk.add_input(input);
  FileList list = walk.finish();
  if (list.files.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "'" + inputs.front().string() + "' and what else was given hold no file to read (" +
                    to_text(list.report) + ")");
  }
  return list;
}

}  // namespace trireme::text
