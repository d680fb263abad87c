#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace trireme::collectives {

/// Memory that is kept from operation to operation and grows to the largest need.
///
/// Threads  caller-synchronised.
class Scratch {
 public:
  /// 64-byte-aligned, with any content. What was returned before is invalid.
  std::span<std::byte> at_least(std::size_t bytes) {
    if (bytes > size_) {
      memory_.reset();
      size_ = 0;
      memory_.reset(static_cast<std::byte*>(::operator new(bytes, kAlignment)));
      size_ = bytes;
    }
    return {memory_.get(), bytes};
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };

  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_ = 0;
};

}  // namespace trireme::collectives
