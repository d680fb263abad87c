#pragma once

#include <cstdint>

namespace trireme::memory {

/// Most physical memory that this process has had so far: code, caches and messages included, which
/// `memory_use` does not count.
std::int64_t resident_peak_bytes();

}  // namespace trireme::memory
