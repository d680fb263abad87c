#include "packs/text/data/python_library.h"

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "trireme/error.h"

namespace trireme::text {
namespace {

/// 11 of `python3.11`; -1 for other names.
int minor_version(std::string_view name) {
  constexpr std::string_view kPrefix = "python3.";
  if (!name.starts_with(kPrefix)) return -1;
  name.remove_prefix(kPrefix.size());
  int version = -1;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), version);
  return problem == std::errc() && end == name.data() + name.size() ? version : -1;
}

}  // namespace

std::filesystem::path python_library(std::string_view option, const std::filesystem::path& under) {
  namespace fs = std::filesystem;
  fs::path newest;
  int version = -1;
  std::error_code problem;
  fs::directory_iterator entry(under, problem);
  for (; !problem && entry != fs::directory_iterator(); entry.increment(problem)) {
    const int found = minor_version(entry->path().filename().string());
    // A folder may be left without the library: packages of other versions put things there.
    std::error_code unreadable;
    if (found > version && fs::exists(entry->path() / "abc.py", unreadable)) {
      version = found;
      newest = entry->path();
    }
  }
  if (version < 0) {
    throw Error(ErrorKind::kUnavailable,
                "no text to train on: there is no Python library in '" + under.string() +
                    "' (python3.*/abc.py); name files or folders with " + std::string(option));
  }
  return newest;
}

}  // namespace trireme::text
