#include "trireme/launch/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "trireme/base/system_error.h"

namespace trireme::launch {

namespace {

bool is_ignored(int signal) {
  struct sigaction action{};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

BlockedSignals::BlockedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    // Blocked ones are queued even where they are ignored.
    if (!is_ignored(signal)) sigaddset(&signals, signal);
  }
  descriptor_ = Descriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor_.is_open()) throw_system_error("watch signals", errno);
  ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

BlockedSignals::~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::vector<int> BlockedSignals::take() {
  std::vector<int> signals;
  signalfd_siginfo info{};
  while (::read(descriptor_.number(), &info, sizeof info) == sizeof info) {
    signals.push_back(static_cast<int>(info.ssi_signo));
  }
  return signals;
}

AwaitedChildren::AwaitedChildren() {
  struct sigaction usual{};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &usual, &before_);
}

AwaitedChildren::~AwaitedChildren() { ::sigaction(SIGCHLD, &before_, nullptr); }

}  // namespace trireme::launch
