#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>

namespace trireme::memory {

/// Memory of CPU tensors, in bytes as tensors asked for it.
struct MemoryUse {
  std::int64_t live_bytes = 0;    ///< Held by tensors now.
  std::int64_t peak_bytes = 0;    ///< Most that was live since the last `reset_peak`.
  std::int64_t cached_bytes = 0;  ///< Freed large blocks kept for reuse.
};

/// Puts torch's CPU tensors on an allocator that counts live bytes and keeps freed large blocks.
///
/// The system's allocator gives blocks above 32 MiB back to the kernel at every free and pays their
/// page faults again at every step. Torch has one CPU allocator per process, so this holds for the
/// whole process and for good; calling it again does nothing. Tensors made before stay where they
/// are. Thread-safe, as are all functions here.
void install_block_allocator();

bool is_block_allocator_installed();

/// All zero where the allocator is not installed.
MemoryUse memory_use();

/// Whether `memory_use` counts this tensor's memory.
bool is_counted(const c10::DataPtr& memory);

/// From here on `peak_bytes` starts at what is live.
void reset_peak();

/// What happens while it lives does not count towards `peak_bytes`; to be destroyed when that is
/// gone again.
class PeakPause {
 public:
  PeakPause();
  ~PeakPause();
  PeakPause(const PeakPause&) = delete;
  PeakPause& operator=(const PeakPause&) = delete;

 private:
  std::int64_t peak_bytes_;
};

/// Tensors' memory that is not torch's own counts as live while this lives.
class OtherMemory {
 public:
  explicit OtherMemory(std::int64_t bytes);
  ~OtherMemory();
  OtherMemory(const OtherMemory&) = delete;
  OtherMemory& operator=(const OtherMemory&) = delete;

 private:
  std::int64_t bytes_;
};

/// Gives the kept blocks back to the system.
void release_cached_blocks();

/// Most physical memory that this process has had so far: code, caches and messages included, which
/// `memory_use` does not count.
std::int64_t resident_peak_bytes();

/// What the machine could still give to processes, by /proc/meminfo; 0 where that does not say.
std::int64_t available_bytes();

/// Settings of torch that belong to the whole process, made before the first step: how many intra-op
/// threads it has (results depend on their number) and the block allocator.
void apply_torch_settings(int num_threads = 1);

}  // namespace trireme::memory
