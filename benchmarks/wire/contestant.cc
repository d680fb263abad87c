#include "benchmarks/wire/contestant.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "trireme/base/system_error.h"
#include "trireme/error.h"
#include "trireme/wire/endpoint/watch.h"
#include "trireme/wire/system/socket.h"

namespace trireme::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kTimeToEnd{20};

void make_pipe(const std::filesystem::path& path) {
  if (mkfifo(path.c_str(), 0600) != 0) throw_system_error("make the pipe", path, errno);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Those of this process, but for those that `own` sets anew.
std::vector<std::string> with_inherited(std::vector<std::string> own) {
  const std::size_t num_own = own.size();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view inherited = *entry;
    const auto is_same = [inherited](const std::string& mine) {
      return inherited.starts_with(mine.substr(0, mine.find('=') + 1));
    };
    if (std::none_of(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(num_own), is_same)) {
      own.emplace_back(inherited);
    }
  }
  return own;
}

/// In the child, where only calls safe after fork are made.
[[noreturn]] void become(char* const* words, char* const* variables, int parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  execvpe(words[0], words, variables);
  constexpr char kText[] = "trireme: cannot start a process of the benchmark\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(127);
}

bool wait_for_end(const Descriptor& ended, Clock::time_point until) {
  pollfd entry{.fd = ended.number(), .events = POLLIN, .revents = 0};
  return poll(&entry, 1, transport::poll_timeout(until)) == 1;
}

}  // namespace

Contestant::Contestant(std::string name, std::filesystem::path folder, int num_ranks,
                       std::span<const Command> commands)
    : name_(std::move(name)) {
  std::filesystem::create_directories(folder);
  for (int rank = 0; rank < num_ranks; ++rank) {
    make_pipe(orders_pipe(folder, rank));
    make_pipe(answers_pipe(folder, rank));
    // Read and write, so that opening does not wait for the other side.
    orders_.push_back(open_pipe(orders_pipe(folder, rank), O_RDWR));
    answers_.emplace_back(open_pipe(answers_pipe(folder, rank), O_RDWR | O_NONBLOCK));
  }
  try {
    for (const Command& command : commands) start(command);
  } catch (...) {
    for (Process& process : processes_) kill(process.pid, SIGKILL);
    for (Process& process : processes_) take_end(process);
    throw;
  }
}

Contestant::~Contestant() {
  for (const Process& process : processes_) kill(process.pid, SIGKILL);
  for (Process& process : processes_) take_end(process);
}

void Contestant::start(const Command& command) {
  std::vector<std::string> words = command.words;
  std::vector<std::string> variables = with_inherited(command.variables);
  const std::vector<char*> word_pointers = pointers(words);
  const std::vector<char*> variable_pointers = pointers(variables);
  const int parent = getpid();
  const int pid = fork();
  if (pid < 0) throw_system_error("start " + words[0], errno);
  if (pid == 0) become(word_pointers.data(), variable_pointers.data(), parent);
  processes_.push_back({pid, Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)))});
  if (!processes_.back().ended.is_open()) throw_system_error("watch " + words[0], errno);
}

std::string Contestant::take_end(Process& process) {
  int status = 0;
  waitpid(process.pid, &status, 0);
  if (WIFSIGNALED(status)) return std::string("by signal ") + strsignal(WTERMSIG(status));
  if (WEXITSTATUS(status) == 0) return "";
  return "with exit code " + std::to_string(WEXITSTATUS(status));
}

std::vector<Answer> Contestant::run(const Order& order, std::chrono::milliseconds deadline) {
  const Clock::time_point until = Clock::now() + deadline;
  for (const Descriptor& pipe : orders_) write_line(pipe, to_text(order));
  std::vector<Answer> answers(answers_.size());
  std::vector<bool> has_answered(answers_.size(), false);
  while (std::ranges::find(has_answered, false) != has_answered.end()) {
    try {
      wait_readable(has_answered, until);
    } catch (Error& error) {
      error.add({.operation = name_ + ": " + to_text(order)});
      throw;
    }
    for (std::size_t rank = 0; rank < answers_.size(); ++rank) {
      if (has_answered[rank]) continue;
      const auto line = answers_[rank].read_line();
      if (!line) continue;
      answers[rank] = parse_answer(*line);
      has_answered[rank] = true;
    }
  }
  return answers;
}

void Contestant::wait_readable(const std::vector<bool>& has_answered, Clock::time_point until) {
  std::vector<pollfd> entries;
  std::vector<int> missing;
  for (const Process& process : processes_) entries.push_back({process.ended.number(), POLLIN, 0});
  for (std::size_t rank = 0; rank < answers_.size(); ++rank) {
    if (has_answered[rank]) continue;
    missing.push_back(static_cast<int>(rank));
    entries.push_back({answers_[rank].pipe().number(), POLLIN, 0});
  }
  if (poll(entries.data(), entries.size(), transport::poll_timeout(until)) == 0) {
    throw Error(ErrorKind::kTimeout, transport::ranks_text(missing) + " of contestant " + name_ +
                                         " did not answer in time; --timeout allows more");
  }
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (entries[i].revents == 0) continue;
    const std::string how = take_end(processes_[i]);
    processes_.erase(processes_.begin() + static_cast<std::ptrdiff_t>(i));
    throw Error(ErrorKind::kPeerLost, "a process of contestant " + name_ + " has ended " +
                                          (how.empty() ? "too early" : how) +
                                          "; what it printed says why");
  }
}

void Contestant::stop() {
  // Not the pipe's end, which a rank would miss that has not opened it yet.
  for (const Descriptor& pipe : orders_) write_line(pipe, kEnd);
  const Clock::time_point until = Clock::now() + kTimeToEnd;
  while (!processes_.empty()) {
    Process process = std::move(processes_.back());
    processes_.pop_back();
    const bool is_late = !wait_for_end(process.ended, until);
    if (is_late) kill(process.pid, SIGKILL);
    const std::string how = take_end(process);
    if (is_late) {
      throw Error(ErrorKind::kTimeout,
                  "a process of contestant " + name_ + " has not ended within 20 s; it was killed");
    }
    if (!how.empty()) {
      throw Error(ErrorKind::kPeerLost, "a process of contestant " + name_ + " has ended " + how);
    }
  }
}

}  // namespace trireme::bench
