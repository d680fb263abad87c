#include "trireme/wire/system/thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "trireme/error.h"
#include "trireme/wire/system/local_socket.h"

namespace trireme::transport {
namespace {

bool& current_flag() {
  thread_local bool is_library_thread = false;  // a fact of the thread, set once at its start
  return is_library_thread;
}

/// Cores of a thread that is bound, or of a LibraryThread that such a thread made.
struct Binding {
  cpu_set_t before;   ///< Where it could run.
  cpu_set_t library;  ///< Where the LibraryThreads run that it makes.
};

/// Nothing if the thread is not bound.
std::optional<Binding>& binding() {
  thread_local std::optional<Binding> bound;  // a fact of the thread too
  return bound;
}

/// For whom a thread has taken cores, and which.
struct Taken {
  int rank = 0;
  int num_ranks = 0;
  std::vector<int> cores;
  std::vector<Descriptor> marks;
};

/// A fact of the thread too, until it ends.
std::optional<Taken>& taken() {
  thread_local std::optional<Taken> cores;
  return cores;
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

/// sched_attr of sched_setattr(2), its first version.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};

/// Asks for short slices of the core. A thread that wakes then runs before one in the middle of a
/// long slice, as computing threads are: without, a message waits for up to 3 ms. The thread's share
/// of the core stays. Linux before 6.12 knows no such slices and ignores them.
void take_short_slices() {
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.runtime_ns = 100'000;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

cpu_set_t set_of(std::span<const int> cores) {
  cpu_set_t result;
  CPU_ZERO(&result);
  for (const int core : cores) CPU_SET(core, &result);
  return result;
}

/// Those beyond the first `num_taken`, and this rank's own.
cpu_set_t spare_cores(std::span<const int> cores, int num_taken, std::span<const int> own) {
  const cpu_set_t mine = set_of(own);
  const cpu_set_t spare = set_of(cores.subspan(static_cast<std::size_t>(num_taken)));
  cpu_set_t result;
  CPU_OR(&result, &mine, &spare);
  return result;
}

void unbind() {
  if (binding()) sched_setaffinity(0, sizeof(cpu_set_t), &binding()->before);
  binding().reset();
}

}  // namespace

LibraryThread::LibraryThread(const std::string& name, std::function<void()> body)
    : thread_([name = name.substr(0, 15), body = std::move(body), bound = binding()] {
        // It begins with its maker's cores.
        if (bound) sched_setaffinity(0, sizeof bound->library, &bound->library);
        binding() = bound;
        pthread_setname_np(pthread_self(), name.c_str());
        take_short_slices();
        current_flag() = true;
        body();
      }) {}

void LibraryThread::join() {
  if (thread_.joinable()) thread_.join();
}

bool LibraryThread::is_current() { return current_flag(); }

void bind_to_cores(std::span<const int> cores) {
  cpu_set_t before;
  if (sched_getaffinity(0, sizeof before, &before) != 0) return;
  const cpu_set_t own = set_of(cores);
  if (sched_setaffinity(0, sizeof own, &own) != 0) return;
  if (!binding()) binding() = {before, before};
}

std::vector<int> allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (binding()) {
    allowed = binding()->before;
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

void take_cores(int rank, int num_ranks, int each) {
  const std::vector<int> cores = allowed_cores();
  const auto count = static_cast<int>(cores.size());
  Taken& mine = taken().emplace(Taken{.rank = rank, .num_ranks = num_ranks});
  if (count / each < num_ranks) return;
  for (int i = 0; i < count && std::cmp_less(mine.cores.size(), each); ++i) {
    const int core = cores[static_cast<std::size_t>((rank * each + i) % count)];
    Descriptor mark = mark_core(core);
    if (!mark.is_open()) continue;
    mine.cores.push_back(core);
    mine.marks.push_back(std::move(mark));
  }
  if (std::cmp_less(mine.cores.size(), each)) {
    taken() = Taken{.rank = rank, .num_ranks = num_ranks};
    return;
  }
  bind_to_cores(mine.cores);
  if (binding()) binding()->library = spare_cores(cores, num_ranks * each, mine.cores);
}

std::vector<int> retake_cores(int each) {
  if (!taken()) return {};
  if (std::cmp_equal(taken()->cores.size(), each)) return taken()->cores;
  const int rank = taken()->rank, num_ranks = taken()->num_ranks;
  unbind();
  take_cores(rank, num_ranks, each);
  return taken()->cores;
}

}  // namespace trireme::transport
