#include "benchmarks/kernels/origin.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <fstream>

namespace trireme::kernels::bench {
namespace {

/// The first line that a command prints.
std::string line_of(const std::string& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "re");
  if (pipe == nullptr) return {};
  std::array<char, 256> line{};
  const bool has_line = std::fgets(line.data(), static_cast<int>(line.size()), pipe) != nullptr;
  while (std::fgetc(pipe) != EOF) continue;
  ::pclose(pipe);
  std::string text = has_line ? line.data() : "";
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace

Origin origin_of(const std::filesystem::path& source) {
  const std::string git = "git -C '" + source.string() + "' ";
  std::string commit = line_of(git + "rev-parse --short=12 HEAD 2>/dev/null");
  if (commit.empty()) commit = "unknown";
  if (!line_of(git + "status --porcelain 2>/dev/null").empty()) commit += "+changes";
  std::array<char, 32> time{};
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::strftime(time.data(), time.size(), "%Y-%m-%d %H:%M", &parts);
  return {commit, processor(), time.data()};
}

}  // namespace trireme::kernels::bench
