#include "trireme/command/run_folder.h"

#include <chrono>
#include <fstream>

#include "trireme/base/error.h"
#include "trireme/base/files.h"
#include "trireme/base/system_error.h"

namespace trireme::command {

void RunFolder::lock() {
  make_folder(root_);
  try {
    lock_.emplace(path("lock"), std::chrono::seconds(10));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kTimeout) throw;
    throw Error(ErrorKind::kUnavailable, "another process trains in '" + root_.string() +
                                             "'; end it, or name another folder");
  }
}

std::string RunFolder::name_for(const std::string& what, int ranks) {
  return what + "-" + std::to_string(ranks) + ".json";
}

void cut_half_line(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return;
  file.seekg(0, std::ios::end);
  std::streamoff end = file.tellg();
  const std::streamoff size = end;
  const auto is_half = [&] { return file.seekg(end - 1) && file.peek() != '\n'; };
  while (end > 0 && is_half()) --end;
  if (end == size) return;
  std::error_code problem;
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(end), problem);
  if (problem) throw_system_error("cut the last line of", path, problem);
}

}  // namespace trireme::command
