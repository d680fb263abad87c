#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trireme/wire/system/shared_memory.h"

namespace trireme::collectives {

/// Where some memory of a rank lies in what the ranks of a group share.
struct Location {
  std::uint32_t region = 0;  ///< Counted from 1; 0: nowhere.
  std::uint64_t offset = 0;

  bool is_shared() const { return region != 0; }
};

/// Memory for buffers that all ranks of a group see: regions, each with an equal part per rank.
///
/// Caller-synchronised.
class Registry {
 public:
  explicit Registry(int num_ranks) : num_ranks_(num_ranks) {}

  /// Takes the next region: num_ranks equal parts in rank order.
  void add(transport::SharedMemory memory) { regions_.push_back(std::move(memory)); }

  std::span<std::byte> part(int region, int rank) const {
    const std::span<std::byte> all = regions_.at(static_cast<std::size_t>(region) - 1).bytes();
    const std::size_t bytes = all.size() / static_cast<std::size_t>(num_ranks_);
    return all.subspan(static_cast<std::size_t>(rank) * bytes, bytes);
  }

  int num_regions() const { return static_cast<int>(regions_.size()); }

  /// Where `memory` of `rank` lies: nowhere, unless all of it is in one part. Empty: nowhere.
  Location find(int rank, std::span<const std::byte> memory) const {
    for (int region = 1; region <= num_regions(); ++region) {
      const std::span<std::byte> part = this->part(region, rank);
      const auto begin = reinterpret_cast<std::uintptr_t>(part.data());
      const auto wanted = reinterpret_cast<std::uintptr_t>(memory.data());
      if (wanted < begin || memory.empty()) continue;
      if (wanted - begin + memory.size() > part.size()) continue;
      return {static_cast<std::uint32_t>(region), wanted - begin};
    }
    return {};
  }

  /// Inverse of `find`.
  std::span<std::byte> at(int rank, const Location& location, std::size_t bytes) const {
    return part(static_cast<int>(location.region), rank).subspan(location.offset, bytes);
  }

 private:
  int num_ranks_;
  std::vector<transport::SharedMemory> regions_;
};

}  // namespace trireme::collectives
