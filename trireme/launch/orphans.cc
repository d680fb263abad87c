#include "trireme/launch/orphans.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace trireme::launch {
namespace {

using Clock = std::chrono::steady_clock;

/// Children of this process's first thread, which adopts, and of the calling one.
std::vector<pid_t> children() {
  std::vector<pid_t> result;
  for (const pid_t thread : {::getpid(), ::gettid()}) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/children");
    for (pid_t child = 0; file >> child;) result.push_back(child);
  }
  return result;
}

}  // namespace

Orphans::Orphans(bool is_active) : is_active_(is_active) {
  if (is_active_) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Orphans::~Orphans() {
  if (is_active_) ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

void Orphans::reap(std::span<const RankProcess> ranks) {
  if (!is_active_) return;
  for (const pid_t child : children()) {
    const bool is_rank = std::any_of(
        ranks.begin(), ranks.end(), [child](const RankProcess& rank) { return rank.pid == child; });
    if (!is_rank) ::waitpid(child, nullptr, WNOHANG);
  }
}

void Orphans::end_all() {
  if (!is_active_) return;
  const auto deadline = Clock::now() + std::chrono::seconds(5);
  // Each that ends may leave others.
  for (auto left = children(); !left.empty() && Clock::now() < deadline; left = children()) {
    for (const pid_t child : left) ::kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    reap({});
  }
}

}  // namespace trireme::launch
