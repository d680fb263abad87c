#include "trireme/base/kernel_files.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "trireme/error.h"

namespace trireme {
namespace {

/// Limits of the process's control group and of those around it; the lowest holds.
std::vector<std::string> memory_limits() {
  constexpr std::string_view kUnified = "0::";  // of /proc/self/cgroup, version 2
  std::vector<std::string> limits = {
      kernel_file("/sys/fs/cgroup/memory/memory.limit_in_bytes")};  // version 1
  const std::string own = kernel_file("/proc/self/cgroup");
  const std::size_t begin = own.find(kUnified);
  if (begin == std::string::npos) return limits;
  std::string path = own.substr(begin + kUnified.size());
  path.resize(std::min(path.size(), path.find('\n')));
  while (true) {
    limits.push_back(kernel_file("/sys/fs/cgroup" + path + "/memory.max"));
    if (path.empty()) return limits;
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
}

std::optional<std::int64_t> leading_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

}  // namespace

std::string kernel_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string field_of(std::string_view text, std::string_view key) {
  constexpr std::string_view kBlank = " \t";
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::size_t key_end = line.substr(0, colon).find_last_not_of(kBlank) + 1;
    const std::size_t begin = line.find_first_not_of(kBlank, colon + 1);
    if (line.substr(0, key_end) != key || begin == std::string_view::npos) continue;
    return std::string(line.substr(begin));
  }
  return "";
}

namespace internal {

std::int64_t usable_bytes(std::string_view meminfo, std::span<const std::string> limits) {
  const auto total_kib = leading_number(field_of(meminfo, "MemTotal"));
  if (!total_kib) throw Error(ErrorKind::kIo, "/proc/meminfo does not say how much memory it has");
  std::int64_t bytes = *total_kib * 1024;
  for (const std::string& limit : limits) {
    bytes = std::min(bytes, leading_number(limit).value_or(bytes));  // `max` is no number
  }
  return bytes;
}

}  // namespace internal

std::int64_t usable_memory_bytes() {
  return internal::usable_bytes(kernel_file("/proc/meminfo"), memory_limits());
}

}  // namespace trireme
