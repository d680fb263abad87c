#include "trireme/command/run_folder.h"

#include <chrono>
#include <system_error>

#include "trireme/base/error.h"
#include "trireme/base/files.h"

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

void end_last_line(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return;
  std::string text = read_file(path);
  if (text.empty() || text.back() == '\n') return;
  write_file_atomically(path, text + "\n");
}

}  // namespace trireme::command
