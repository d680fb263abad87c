#include "trireme/wire/transport/thread.h"

#include <pthread.h>
#include <sched.h>

#include <optional>
#include <utility>

namespace trireme::transport {
namespace {

bool& current_flag() {
  thread_local bool is_library_thread = false;  // a fact of the thread, set once at its start
  return is_library_thread;
}

/// The cores on which the thread could run before `bind_to_core`; nothing if it is not bound.
std::optional<cpu_set_t>& cores_before() {
  thread_local std::optional<cpu_set_t> cores;  // a fact of the thread too
  return cores;
}

}  // namespace

LibraryThread::LibraryThread(const std::string& name, std::function<void()> body)
    : thread_([name = name.substr(0, 15), body = std::move(body), cores = cores_before()] {
        if (cores) sched_setaffinity(0, sizeof *cores, &*cores);  // it begins with its maker's
        pthread_setname_np(pthread_self(), name.c_str());
        current_flag() = true;
        body();
      }) {}

void LibraryThread::join() {
  if (thread_.joinable()) thread_.join();
}

bool LibraryThread::is_current() { return current_flag(); }

void bind_to_core(int core) {
  cpu_set_t before, own;
  if (sched_getaffinity(0, sizeof before, &before) != 0) return;
  CPU_ZERO(&own);
  CPU_SET(core, &own);
  if (sched_setaffinity(0, sizeof own, &own) != 0) return;
  if (!cores_before()) cores_before() = before;
}

int count_cores() {
  if (cores_before()) return CPU_COUNT(&*cores_before());
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return static_cast<int>(std::thread::hardware_concurrency());
}

void take_core(int rank, int num_ranks) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  if (CPU_COUNT(&allowed) < num_ranks) return;
  int core = -1;
  for (int seen = -1; seen < rank;) seen += CPU_ISSET(++core, &allowed) ? 1 : 0;
  bind_to_core(core);
}

}  // namespace trireme::transport
