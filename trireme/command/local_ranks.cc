#include "trireme/command/local_ranks.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/wire/transport/store.h"

namespace trireme::command {
namespace {

using Clock = std::chrono::steady_clock;

/// A rank's process, by a descriptor that becomes readable when it ends.
struct Process {
  int rank = 0;
  pid_t pid = -1;
  Descriptor ended;
};

std::vector<std::string> environment_of(int rank, int num_ranks, const transport::Address& store) {
  const std::vector<std::string> own = {
      "TRIREME_RANK=" + std::to_string(rank), "TRIREME_WORLD_SIZE=" + std::to_string(num_ranks),
      "TRIREME_STORE_HOST=" + store.host, "TRIREME_STORE_PORT=" + std::to_string(store.port),
      "TRIREME_LAUNCHER_PID=" + std::to_string(getpid())};
  std::vector<std::string> variables = own;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view inherited = *entry;
    const auto is_same = [inherited](const std::string& mine) {
      return inherited.starts_with(mine.substr(0, mine.find('=') + 1));
    };
    if (std::none_of(own.begin(), own.end(), is_same)) variables.emplace_back(inherited);
  }
  return variables;
}

Process start(int rank, int num_ranks, std::span<const char* const> argv,
              const transport::Address& store) {
  std::vector<std::string> words(argv.begin(), argv.end());
  std::vector<std::string> variables = environment_of(rank, num_ranks, store);
  std::vector<char*> word_pointers, variable_pointers;
  for (std::string& word : words) word_pointers.push_back(word.data());
  for (std::string& variable : variables) variable_pointers.push_back(variable.data());
  word_pointers.push_back(nullptr);
  variable_pointers.push_back(nullptr);
  Process process{.rank = rank, .pid = -1, .ended = {}};
  const int failed = posix_spawn(&process.pid, "/proc/self/exe", nullptr, nullptr,
                                 word_pointers.data(), variable_pointers.data());
  if (failed != 0) {
    throw Error(ErrorKind::kIo,
                "cannot start rank " + std::to_string(rank) + ": " + std::strerror(failed));
  }
  const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
  if (descriptor < 0) {
    kill(process.pid, SIGKILL);
    throw Error(ErrorKind::kIo, std::string("cannot watch a rank's process: ") +
                                    std::strerror(errno) + "; Linux 5.3 or later is needed");
  }
  process.ended = Descriptor(descriptor);
  return process;
}

/// How a rank's process has ended.
struct End {
  int rank = 0;
  int code = 0;  ///< 1 for a signal.
  bool is_by_signal = false;
  std::string why_lost;
};

/// Takes the exit status of a process that has ended.
End take_end(const Process& process) {
  int status = 0;
  waitpid(process.pid, &status, 0);
  if (WIFSIGNALED(status)) {
    return {process.rank, 1, true,
            "its process was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
                strsignal(WTERMSIG(status)) + ")"};
  }
  const int code = WEXITSTATUS(status);
  return {process.rank, code, false,
          "its process ended with exit code " + std::to_string(code) +
              (code == 0 ? " before its goodbye" : "")};
}

/// Waits until processes have ended or `until` has come. Takes those that have ended, the ones
/// ended by a signal first: the others may have failed only because they lost those.
std::vector<End> wait_for_ends(std::vector<Process>& processes,
                               std::optional<Clock::time_point> until) {
  std::vector<pollfd> polled;
  for (const Process& process : processes) polled.push_back({process.ended.number(), POLLIN, 0});
  int wait_ms = -1;
  if (until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count();
    wait_ms = left < 0 ? 0 : static_cast<int>(left);
  }
  if (poll(polled.data(), polled.size(), wait_ms) <= 0) return {};
  std::vector<End> ends;
  std::vector<Process> running;
  for (std::size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents != 0) {
      ends.push_back(take_end(processes[i]));
    } else {
      running.push_back(std::move(processes[i]));
    }
  }
  processes = std::move(running);
  std::stable_partition(ends.begin(), ends.end(), [](const End& end) { return end.is_by_signal; });
  return ends;
}

}  // namespace

int run_local_ranks(int num_ranks, std::span<const char* const> argv) {
  transport::StoreServer store({.host = "127.0.0.1", .port = 0});
  std::vector<Process> processes;
  for (int rank = 0; rank < num_ranks; ++rank) {
    processes.push_back(start(rank, num_ranks, argv, store.address()));
  }
  int code = 0;
  std::optional<Clock::time_point> grace;
  while (!processes.empty()) {
    const std::vector<End> ends = wait_for_ends(processes, grace);
    if (ends.empty() && grace && Clock::now() >= *grace) {
      for (const Process& process : processes) kill(process.pid, SIGKILL);
      grace.reset();
    }
    for (const End& end : ends) {
      store.mark_lost(end.rank, end.why_lost);  // the store knows who has said goodbye
      if (end.code == 0 || code != 0) continue;
      code = end.code;
      grace = Clock::now() + std::chrono::seconds(kGraceSeconds);
      std::fprintf(stderr, "trireme: rank %d failed: %s\n", end.rank, end.why_lost.c_str());
    }
  }
  return code;
}

}  // namespace trireme::command
