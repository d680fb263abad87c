#include "trireme/engine/memory/resident.h"

#include <sys/resource.h>

namespace trireme::memory {

std::int64_t resident_peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;  // Linux counts in KiB
}

}  // namespace trireme::memory
