#include "trireme/wire/transport/thread.h"

#include <pthread.h>
#include <sched.h>

#include <optional>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/wire/transport/shm/local_socket.h"

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

/// Whose core it is: a fact of the thread too, until it ends.
Descriptor& mark_of_core() {
  thread_local Descriptor mark;
  return mark;
}

/// A name that one process of the host can have at a time, and that goes with it; not open where
/// another has it.
Descriptor mark_core(int core) {
  try {
    return internal::listen_locally("trireme/core/" + std::to_string(core));
  } catch (const Error&) {
    return {};
  }
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

std::vector<int> allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (cores_before()) {
    allowed = *cores_before();
  } else {
    sched_getaffinity(0, sizeof allowed, &allowed);
  }
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

int count_cores() {
  const auto count = static_cast<int>(allowed_cores().size());
  return count > 0 ? count : static_cast<int>(std::thread::hardware_concurrency());
}

void take_core(int rank, int num_ranks) {
  const std::vector<int> cores = allowed_cores();
  const auto count = static_cast<int>(cores.size());
  if (count < num_ranks) return;
  for (int i = 0; i < count; ++i) {
    const int core = cores[static_cast<std::size_t>((rank + i) % count)];
    if (Descriptor mark = mark_core(core); mark.is_open()) {
      mark_of_core() = std::move(mark);
      return bind_to_core(core);
    }
  }
}

}  // namespace trireme::transport
