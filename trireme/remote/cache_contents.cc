#include "trireme/remote/cache_contents.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <system_error>

#include "trireme/base/file_lock.h"
#include "trireme/base/system_error.h"

namespace trireme::remote {
namespace {

namespace fs = std::filesystem;

/// Whether the process that has locked a file has ended; then it is removed.
bool remove_if_left(const fs::path& path) {
  const std::optional<FileLock> left = FileLock::attempt(path);
  if (left) ::unlink(path.c_str());
  return left.has_value();
}

std::vector<fs::path> paths_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    paths.push_back(entry->path());
  }
  if (problem) throw_system_error("list folder", folder, problem);
  return paths;
}

HeldFiles read_lease(const fs::path& path) {
  HeldFiles files;
  std::ifstream file(path);
  std::int64_t bytes = 0;
  for (std::string name; file >> bytes >> name;) files[name] = bytes;
  return files;
}

}  // namespace

bool is_cached_name(std::string_view name) {
  constexpr std::size_t kDigits = 32;
  return name.size() > kDigits && name[kDigits] == '-' &&
         name.find_first_not_of("0123456789abcdef") == kDigits;
}

std::string lease_text(const HeldFiles& files) {
  std::string text;
  for (const auto& [name, bytes] : files) text += std::to_string(bytes) + " " + name + "\n";
  return text;
}

CacheContents::CacheContents(const fs::path& folder) {
  for (const fs::path& path : paths_in(folder)) {
    const std::string name = path.filename().string();
    if (name.ends_with(kLeaseEnding) && !remove_if_left(path)) hold(read_lease(path));
    if (!is_cached_name(name)) continue;
    if (name.ends_with(kPartEnding)) {
      remove_if_left(path);
      continue;
    }
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    files_.push_back(
        {.path = path,
         .bytes = status.st_size,
         .used_at = status.st_atim.tv_sec * std::int64_t{1'000'000'000} + status.st_atim.tv_nsec});
  }
}

std::int64_t CacheContents::held_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [name, of_file] : held_) bytes += of_file;
  return bytes;
}

std::int64_t CacheContents::loose_bytes() const {
  std::int64_t bytes = 0;
  for (const File& file : files_) bytes += is_held(file) ? 0 : file.bytes;
  return bytes;
}

bool CacheContents::remove_oldest() {
  const auto loose =
      std::ranges::partition(files_, [&](const File& file) { return is_held(file); });
  const auto oldest = std::ranges::min_element(loose, {}, &File::used_at);
  if (oldest == loose.end()) return false;
  if (::unlink(oldest->path.c_str()) != 0 && errno != ENOENT) {
    throw_system_error("remove", oldest->path, errno);
  }
  files_.erase(oldest);
  return true;
}

bool reserve(const Descriptor& file, std::int64_t bytes) {
  if (bytes == 0) return true;
  if (::fallocate(file.number(), 0, 0, bytes) == 0) return true;
  if (errno == EOPNOTSUPP || errno == ENOSYS) {
    if (::ftruncate(file.number(), bytes) == 0) return true;
  }
  if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) return false;
  throw_system_error("take room in the cache", errno);
}

}  // namespace trireme::remote
