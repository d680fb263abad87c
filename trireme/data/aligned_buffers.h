#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "trireme/data/own_process.h"

namespace trireme::data {

/// Memory that begins at a multiple of a power of two, and is as large as a power of two, not filled; given back to its pool.
/// In a child by fork it comes from the system each time.
class AlignedBuffers {
 public:
  /// Bytes from the pool. Lives no longer than it.
  class Lease {
   public:
    Lease() = default;
    Lease(AlignedBuffers& pool, std::span<std::byte> bytes) : pool_(&pool), bytes_(bytes) {}
    ~Lease() { reset(); }
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;

    std::span<std::byte> bytes() const { return bytes_; }
    void reset();

    /// Loses the memory: nobody gets it again.
    void abandon() { pool_ = nullptr; }

   private:
    AlignedBuffers* pool_ = nullptr;
    std::span<std::byte> bytes_;
  };

  /// alignment   of all, a power of two.
  /// max_kept    bytes that are kept for the next one.
  AlignedBuffers(std::size_t alignment, std::int64_t max_kept)
      : alignment_(alignment), max_kept_(max_kept) {}
  ~AlignedBuffers();
  AlignedBuffers(const AlignedBuffers&) = delete;
  AlignedBuffers& operator=(const AlignedBuffers&) = delete;

  /// At least `bytes`. kResourceExhausted where there is no memory. Thread-safe.
  Lease get(std::size_t bytes);

  /// Of what `get(bytes)` returns.
  std::size_t size_of(std::size_t bytes) const;

 private:
  void put(std::span<std::byte> bytes);

  std::size_t alignment_;
  std::int64_t max_kept_;
  OwnProcess process_;
  std::mutex mutex_;                                     ///< Guards what follows.
  std::map<std::size_t, std::vector<std::byte*>> kept_;  ///< By size.
  std::int64_t kept_bytes_ = 0;
};

}  // namespace trireme::data
