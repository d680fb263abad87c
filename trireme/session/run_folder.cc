#include "trireme/session/run_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "trireme/base/files.h"
#include "trireme/base/inheritance.h"
#include "trireme/base/system_error.h"
#include "trireme/engine/measure/detect_topology.h"
#include "trireme/error.h"

namespace trireme::session {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{50};
constexpr std::chrono::milliseconds kUnsure{1'000};  // who holds it may not have written it yet
constexpr std::chrono::seconds kEnding{10};

/// `process 123 on host-a`
std::string own_text() {
  return "process " + std::to_string(::getpid()) + " on " + measure::host_name();
}

/// What the holder of a lock wrote about itself; empty where it is not known.
std::string holder_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return text.substr(0, 200);
}

/// Whether a process is on its way out: what it holds is let go last.
bool is_exiting(const std::string& pid) {
  constexpr unsigned kExiting = 0x4;  // PF_EXITING, field 9 of proc(5)'s stat
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return true;
  std::istringstream fields(text.substr(name_end + 1));
  std::string state, parent, group, session, terminal, foreground;
  unsigned flags = 0;
  fields >> state >> parent >> group >> session >> terminal >> foreground >> flags;
  return state == "Z" || state == "X" || (flags & kExiting) != 0;
}

/// Whether a SIGKILL is on its way to a process.
bool is_killed(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("SigPnd:") && !line.starts_with("ShdPnd:")) continue;
    const auto signals = std::stoull(line.substr(line.find(':') + 1), nullptr, 16);
    if ((signals & (1ULL << (SIGKILL - 1))) != 0) return true;
  }
  return false;
}

/// Whether the holder may be gone soon: killed, or not there any more. False on other hosts.
bool is_ending(const std::string& holder) {
  const std::string before = "process ", after = " on " + measure::host_name();
  if (!holder.starts_with(before) || !holder.ends_with(after)) return false;
  const std::string rest = holder.substr(before.size());
  const std::string pid = rest.substr(0, rest.find(' '));
  return is_exiting(pid) || is_killed(pid);
}

}  // namespace

/// Takes both locks, or none.
bool RunFolder::try_lock() {
  Descriptor root(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.is_open()) throw_system_error("open the run's folder", root_, errno);
  keep_from_children(root);
  // File systems of other hosts may have no locks of folders.
  if (::flock(root.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  try {
    lock_.emplace(path("lock"), std::chrono::milliseconds(0));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kTimeout) return false;
    throw;
  }
  locked_root_ = std::move(root);
  return true;
}

void RunFolder::lock() {
  make_folder(root_);
  const auto begin = steady_clock::now();
  while (!try_lock()) {
    const auto waited = steady_clock::now() - begin;
    const std::string holder = holder_text(path("lock"));
    const bool is_removed = !std::filesystem::exists(path("lock"));  // under whoever has it
    const bool is_sure = is_removed || (!holder.empty() && !is_ending(holder));
    if (waited > kEnding || (is_sure && waited > kUnsure)) {
      throw Error(ErrorKind::kUnavailable, "another process trains in '" + root_.string() + "'" +
                                               (holder.empty() ? "" : ": " + holder) +
                                               "; end it, or name another folder");
    }
    std::this_thread::sleep_for(kLook);
  }
  std::ofstream(path("lock"), std::ios::trunc) << own_text() << "\n";
}

void RunFolder::require_here() const {
  struct stat locked{}, now{};
  if (!locked_root_.is_open() || ::fstat(locked_root_.number(), &locked) != 0) return;
  if (::stat(root_.c_str(), &now) == 0 && now.st_ino == locked.st_ino &&
      now.st_dev == locked.st_dev) {
    return;
  }
  throw Error(ErrorKind::kIo, "the run's folder '" + root_.string() +
                                  "' was removed or replaced while it trains; nothing more can be "
                                  "kept there");
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

}  // namespace trireme::session
