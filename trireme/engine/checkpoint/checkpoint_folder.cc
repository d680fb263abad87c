#include "trireme/engine/checkpoint/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <random>
#include <string>
#include <string_view>
#include <system_error>

#include "trireme/base/files.h"
#include "trireme/base/system_error.h"
#include "trireme/engine/checkpoint/checkpoint_index.h"
#include "trireme/error.h"

namespace trireme::checkpoint {

namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kPartial = ".partial";
constexpr std::string_view kRemoved = ".removed";
constexpr std::string_view kDamaged = ".damaged";

void remove_folder(const std::filesystem::path& path) {
  std::error_code problem;
  std::filesystem::remove_all(path, problem);
  if (problem) throw_system_error("remove", path, problem);
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
  std::error_code ignored;
  for (const auto& path : entries()) {
    const auto step = step_of(path.filename().string());
    if (step && std::filesystem::is_directory(path, ignored)) result.push_back(*step);
  }
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

std::vector<std::filesystem::path> Folder::entries() const {
  std::vector<std::filesystem::path> result;
  std::error_code problem;
  for (std::filesystem::directory_iterator entry(root_, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    result.push_back(entry->path());
  }
  if (problem && problem != std::errc::no_such_file_or_directory) {
    throw_system_error("list", root_, problem);
  }
  return result;
}

void Folder::remove_leftovers() const {
  std::error_code ignored;  // another process may still write there: the next one removes it
  for (const auto& path : entries()) {
    const std::string name = path.filename().string();
    const bool is_part =
        name.starts_with(kPrefix) && (name.ends_with(kPartial) || name.ends_with(kRemoved));
    if (is_part || name.starts_with("latest.tmp-")) std::filesystem::remove_all(path, ignored);
  }
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
  sync_folder(partial);
  rename_durably(partial, published(step));
  write_file_atomically(root_ / "latest", published(step).filename().string() + "\n");
}

void Folder::set_aside(std::int64_t step) const {
  const std::filesystem::path aside = published(step) += kDamaged;
  remove_folder(aside);
  rename_durably(published(step), aside);
}

bool Folder::is_finite(std::int64_t step) const {
  try {
    return load(published(step) / "index.json").contents.not_finite.empty();
  } catch (const Error&) {
    return false;  // what cannot be read is nothing to go on from
  }
}

void Folder::keep_last(int count, const std::set<std::int64_t>& others) const {
  if (count < 1) {
    throw Error(ErrorKind::kInvalidArgument,
                "at least 1 checkpoint is kept, got " + std::to_string(count));
  }
  const std::vector<std::int64_t> all = steps();
  const auto finite =
      std::find_if(all.rbegin(), all.rend(), [&](std::int64_t step) { return is_finite(step); });
  for (std::size_t i = 0; i + count < all.size(); ++i) {
    if ((finite != all.rend() && all[i] == *finite) || others.contains(all[i])) continue;
    const std::filesystem::path removed = published(all[i]) += kRemoved;
    // A published name is whole, also while it is removed.
    rename_durably(published(all[i]), removed);
    remove_folder(removed);
  }
}

}  // namespace trireme::checkpoint
