#include "trireme/engine/checkpoint/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <random>
#include <string>
#include <string_view>
#include <system_error>

#include "trireme/base/error.h"
#include "trireme/base/files.h"

namespace trireme::checkpoint {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kPartial = ".partial";
constexpr std::string_view kRemoved = ".removed";

[[noreturn]] void fail(const std::string& action, const std::filesystem::path& path,
                       const std::error_code& problem) {
  const bool is_full = problem == std::errc::no_space_on_device;
  throw Error(is_full ? ErrorKind::kResourceExhausted : ErrorKind::kIo,
              "cannot " + action + " '" + path.string() + "': " + problem.message());
}

void remove_folder(const std::filesystem::path& path) {
  std::error_code problem;
  std::filesystem::remove_all(path, problem);
  if (problem) fail("remove", path, problem);
}

/// Two folders get each other's names, at once.
void exchange(const std::filesystem::path& a, const std::filesystem::path& b) {
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return;
  fail("exchange with '" + b.filename().string() + "'", a, {errno, std::generic_category()});
}

/// The step of a published folder's name.
std::optional<std::int64_t> step_of(const std::string& name) {
  std::int64_t step = 0;
  const char* end = name.data() + name.size();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto [rest, problem] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (problem != std::errc() || rest != end || step < 0) return std::nullopt;
  if (name != std::string(kPrefix) + std::to_string(step)) return std::nullopt;  // `step-007`
  return step;
}

}  // namespace

std::vector<std::int64_t> Folder::steps() const {
  std::vector<std::int64_t> result;
  std::error_code problem;
  for (std::filesystem::directory_iterator entry(root_, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    const auto step = step_of(entry->path().filename().string());
    if (step && entry->is_directory()) result.push_back(*step);
  }
  if (problem && problem != std::errc::no_such_file_or_directory) fail("list", root_, problem);
  std::sort(result.begin(), result.end());
  return result;
}

std::optional<std::int64_t> Folder::newest() const {
  const std::vector<std::int64_t> all = steps();
  if (all.empty()) return std::nullopt;
  return all.back();
}

std::filesystem::path Folder::published(std::int64_t step) const {
  return root_ / (std::string(kPrefix) + std::to_string(step));
}

void Folder::remove_leftovers() const {
  std::vector<std::filesystem::path> leftovers;
  for (const auto& entry : std::filesystem::directory_iterator(root_)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && (name.ends_with(kPartial) || name.ends_with(kRemoved))) {
      leftovers.push_back(entry.path());
    }
  }
  std::error_code ignored;  // another process may still write there: the next one removes it
  for (const auto& path : leftovers) std::filesystem::remove_all(path, ignored);
}

std::filesystem::path Folder::begin(std::int64_t step) const {
  make_folder(root_);
  remove_leftovers();
  std::random_device random;
  std::filesystem::path partial = published(step);
  partial += fmt::format(".{:08x}{:08x}{}", random(), random(), kPartial);
  make_folder(partial);
  return partial;
}

void Folder::publish(const std::filesystem::path& partial, std::int64_t step) const {
  const std::filesystem::path to = published(step);
  sync_folder(partial);
  if (std::filesystem::exists(to)) {
    exchange(partial, to);
    sync_folder(root_);
    remove_folder(partial);
  } else {
    rename_durably(partial, to);
  }
  write_file_atomically(root_ / "latest", to.filename().string() + "\n");
}

void Folder::keep_last(int count) const {
  if (count < 1) {
    throw Error(ErrorKind::kInvalidArgument,
                "at least 1 checkpoint is kept, got " + std::to_string(count));
  }
  const std::vector<std::int64_t> all = steps();
  for (std::size_t i = 0; i + count < all.size(); ++i) {
    const std::filesystem::path removed = published(all[i]) += kRemoved;
    // A published name is whole, also while it is removed.
    rename_durably(published(all[i]), removed);
    remove_folder(removed);
  }
}

}  // namespace trireme::checkpoint
