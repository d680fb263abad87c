#include "trireme/engine/memory/process_threads.h"

#include <ATen/Parallel.h>

#include <ctime>

namespace trireme::memory {

std::chrono::duration<double> compute_time() {
  timespec time{};
  clock_gettime(at::get_num_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace trireme::memory
