#include "trireme/command/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/base/files.h"

namespace trireme::command {
namespace {

[[noreturn]] void fail(const std::string& action, const std::filesystem::path& path,
                       const std::string& problem) {
  throw Error(ErrorKind::kIo, "cannot " + action + " '" + path.string() + "': " + problem);
}

}  // namespace

RunFolder::~RunFolder() {
  if (lock_ >= 0) ::close(lock_);
}

void RunFolder::lock() {
  std::error_code problem;
  std::filesystem::create_directories(root_, problem);
  if (problem) fail("make the folder", root_, problem.message());
  sync_folder(root_.has_parent_path() ? root_.parent_path() : ".");
  const std::filesystem::path file = path("lock");
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) fail("open", file, std::strerror(errno));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) fail("lock", file, std::strerror(errno));
    if (std::chrono::steady_clock::now() > deadline) {
      throw Error(ErrorKind::kUnavailable, "another process trains in '" + root_.string() +
                                               "'; end it, or name another folder");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
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
