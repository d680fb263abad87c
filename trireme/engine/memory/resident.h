#pragma once

#include <cstdint>

namespace trireme::memory {

/// Most physical memory that this process has had so far: code, caches and messages included, which
/// `memory_use` does not count.
std::int64_t resident_peak_bytes();

/// What the machine could still give to processes, by /proc/meminfo; 0 where that does not say.
std::int64_t available_bytes();

}  // namespace trireme::memory
