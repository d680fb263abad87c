#include "trireme/engine/memory/process_memory.h"

#include <ATen/Parallel.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "trireme/base/kernel_files.h"

namespace trireme::memory {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kSmallestKept = 32 << 10;  // of smaller ones malloc gives little back

/// In front of each block, since a tensor's context must be its data pointer: oneDNN's
/// raw_allocate aborts otherwise, so the size cannot be kept there.
struct alignas(kAlignment) Header {
  std::size_t requested;
  std::size_t capacity;
};

/// Eight sizes between powers of two: at most an eighth of a kept block is unused.
std::size_t capacity_for(std::size_t bytes) {
  if (bytes < kSmallestKept) return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

class BlockAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* data = bytes == 0 ? nullptr : take(bytes);
    return {data, data, &free_block, at::Device(at::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }

  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }

  MemoryUse use() {
    const std::lock_guard lock(mutex_);
    return use_;
  }

  /// To what is live, but not below `bytes`.
  void reset_peak(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    use_.peak_bytes = std::max(use_.live_bytes, bytes);
  }

  void add_live(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    use_.live_bytes += bytes;
    use_.peak_bytes = std::max(use_.peak_bytes, use_.live_bytes);
  }

  void release_cached() {
    const std::lock_guard lock(mutex_);
    for (auto& [capacity, blocks] : kept_) {
      for (Header* block : blocks) std::free(block);
    }
    kept_.clear();
    use_.cached_bytes = 0;
  }

 private:
  void* take(std::size_t bytes) {
    const std::size_t capacity = capacity_for(bytes);
    Header* header = take_kept(capacity);
    if (header == nullptr) {
      header = static_cast<Header*>(std::aligned_alloc(kAlignment, sizeof(Header) + capacity));
    }
    if (header == nullptr) {
      release_cached();
      header = static_cast<Header*>(std::aligned_alloc(kAlignment, sizeof(Header) + capacity));
    }
    if (header == nullptr) throw std::bad_alloc();
    *header = {bytes, capacity};
    add_live(static_cast<std::int64_t>(bytes));
    return header + 1;
  }

  Header* take_kept(std::size_t capacity) {
    if (capacity < kSmallestKept) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(capacity);
    if (found == kept_.end() || found->second.empty()) return nullptr;
    Header* header = found->second.back();
    found->second.pop_back();
    use_.cached_bytes -= static_cast<std::int64_t>(capacity);
    return header;
  }

  void give_back(Header* header) {
    const std::size_t capacity = header->capacity;
    {
      const std::lock_guard lock(mutex_);
      use_.live_bytes -= static_cast<std::int64_t>(header->requested);
      if (capacity >= kSmallestKept) {
        kept_[capacity].push_back(header);
        use_.cached_bytes += static_cast<std::int64_t>(capacity);
        return;
      }
    }
    std::free(header);
  }

  static void free_block(void* data);

  std::mutex mutex_;  ///< Guards what follows.
  MemoryUse use_;
  std::map<std::size_t, std::vector<Header*>> kept_;  ///< Free large blocks by capacity.
};

/// Torch's allocator is the process's; never destroyed, since tensors may outlive main.
BlockAllocator& allocator() {
  static auto* instance = new BlockAllocator;
  return *instance;
}

void BlockAllocator::free_block(void* data) {
  if (data != nullptr) allocator().give_back(static_cast<Header*>(data) - 1);
}

}  // namespace

void install_block_allocator() {
  if (!is_block_allocator_installed()) c10::SetCPUAllocator(&allocator(), /*priority=*/1);
}

bool is_block_allocator_installed() { return c10::GetCPUAllocator() == &allocator(); }

MemoryUse memory_use() { return allocator().use(); }

bool is_counted(const c10::DataPtr& memory) {
  return memory.get_deleter() == allocator().raw_deleter();
}

void reset_peak() { allocator().reset_peak(0); }

PeakPause::PeakPause() : peak_bytes_(memory_use().peak_bytes) {}

PeakPause::~PeakPause() { allocator().reset_peak(peak_bytes_); }

OtherMemory::OtherMemory(std::int64_t bytes) : bytes_(is_block_allocator_installed() ? bytes : 0) {
  allocator().add_live(bytes_);
}

OtherMemory::~OtherMemory() { allocator().add_live(-bytes_); }

void release_cached_blocks() { allocator().release_cached(); }

std::int64_t resident_peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;  // Linux counts in KiB
}

std::int64_t available_bytes() {
  const std::string kib = field_of(kernel_file("/proc/meminfo"), "MemAvailable");
  return std::strtoll(kib.c_str(), nullptr, 10) * 1024;
}

void apply_torch_settings(int num_threads) {
  at::set_num_threads(num_threads);
  install_block_allocator();
}

}  // namespace trireme::memory
