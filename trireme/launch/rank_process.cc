#include "trireme/launch/rank_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme::launch {
namespace {

struct Pipe {
  Descriptor reading;
  Descriptor writing;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_system_error("make a pipe", errno);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::vector<char*> pointers_of(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// What the child needs; made before the fork, since afterwards nothing may be allocated.
struct ChildPlan {
  const char* program;
  char* const* words;
  char* const* variables;
  int null;  ///< Its input; -1 to keep all three.
  int output;
  int errors;
  int report;  ///< Where the reason of a failure goes.
  pid_t parent;
};

/// The child from fork to exec. Only functions that are safe between the two.
[[noreturn]] void become_program(const ChildPlan& plan) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(1);  // it has ended meanwhile
  ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const bool is_ready =
      plan.null < 0 ||
      (::dup2(plan.null, 0) == 0 && ::dup2(plan.output, 1) == 1 && ::dup2(plan.errors, 2) == 2);
  if (is_ready) ::execvpe(plan.program, plan.words, plan.variables);
  const int code = errno;
  [[maybe_unused]] const auto written = ::write(plan.report, &code, sizeof code);
  ::_exit(127);
}

/// Waits until the child has become the program; else its error number.
int failure_of_exec(const Descriptor& report) {
  int code = 0;
  ssize_t count = 0;
  do {
    count = ::read(report.number(), &code, sizeof code);
  } while (count < 0 && errno == EINTR);
  return count == sizeof code ? code : 0;
}

void set_nonblocking(const Descriptor& pipe) {
  const int flags = ::fcntl(pipe.number(), F_GETFL);
  if (::fcntl(pipe.number(), F_SETFL, flags | O_NONBLOCK) != 0) {
    throw_system_error("set up a pipe", errno);
  }
}

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

Descriptor watch_end(pid_t pid) {
  Descriptor ended(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (ended.is_open()) return ended;
  const int code = errno;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  throw Error(ErrorKind::kIo, std::string("cannot watch a rank's process: ") + std::strerror(code) +
                                  "; Linux 5.3 or later is needed");
}

}  // namespace

RankProcess start_process(int rank, const ProcessOptions& options) {
  std::vector<std::string> words = options.words;
  std::vector<std::string> variables = options.variables;
  const std::vector<char*> word_pointers = pointers_of(words);
  const std::vector<char*> variable_pointers = pointers_of(variables);
  Pipe report = make_pipe(), output, errors;
  Descriptor null;
  if (options.captures_output) {
    output = make_pipe();
    errors = make_pipe();
    null = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null.is_open()) throw_system_error("open", "/dev/null", errno);
    set_nonblocking(output.reading);
    set_nonblocking(errors.reading);
  }
  const ChildPlan plan{.program = options.program.c_str(),
                       .words = word_pointers.data(),
                       .variables = variable_pointers.data(),
                       .null = null.number(),
                       .output = output.writing.number(),
                       .errors = errors.writing.number(),
                       .report = report.writing.number(),
                       .parent = ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) throw_system_error("start rank " + std::to_string(rank), errno);
  if (pid == 0) become_program(plan);
  ::setpgid(pid, pid);  // as the child does: whoever is first
  report.writing.reset();
  if (const int code = failure_of_exec(report.reading); code != 0) {
    ::waitpid(pid, nullptr, 0);
    throw Error(ErrorKind::kInvalidArgument, "cannot start '" + options.program + "' as rank " +
                                                 std::to_string(rank) + ": " + std::strerror(code));
  }
  return {rank, pid, watch_end(pid), std::move(output.reading), std::move(errors.reading)};
}

bool is_stopped(const RankProcess& process) {
  std::ifstream file("/proc/" + std::to_string(process.pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // the name may hold anything
  return name_end != std::string::npos && text.substr(name_end + 1).starts_with(" T");
}

ProcessEnd take_end(const RankProcess& process) {
  // Before it is reaped: from then on the group's number may be another's.
  ::kill(-process.pid, SIGKILL);
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(process.pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended != process.pid) {
    throw_system_error("ask how rank " + std::to_string(process.rank) + " ended", errno);
  }
  if (WIFSIGNALED(status)) return {process.rank, 128 + WTERMSIG(status), WTERMSIG(status)};
  return {process.rank, WEXITSTATUS(status), std::nullopt};
}

std::string ProcessEnd::text() const {
  if (!signal) return "its process ended with exit code " + std::to_string(code);
  return "its process was ended by signal " + std::to_string(*signal) + " (" + strsignal(*signal) +
         ")";
}

std::vector<std::string> environment_with(const std::vector<std::string>& own,
                                          const std::vector<std::string>& dropped) {
  std::vector<std::string> names = dropped;
  for (const std::string& variable : own) names.push_back(name_of(variable));
  std::vector<std::string> variables = own;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name = name_of(*entry);
    if (std::find(names.begin(), names.end(), name) == names.end()) variables.emplace_back(*entry);
  }
  return variables;
}

}  // namespace trireme::launch
