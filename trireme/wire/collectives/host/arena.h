#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trireme/wire/collectives/host/way.h"
#include "trireme/wire/collectives/members.h"
#include "trireme/wire/system/shared_memory.h"
#include "trireme/wire/system/signal.h"

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

/// The memory that the ranks of a group share where all are on one host. For each rank, written by
/// it and read by all:
///
///     progress        a Signal: steps of operations that the rank has done
///     ways, routes    of the first rank: how all of them stage, and whether they do
///     cores           those on which it may run, written before its first step
///     slots           two, used in turn: what it is about to do, and its data where that is little
///     staging         two halves, used in turn: its data, a piece after the other
///
/// Views; the memory outlives them. All zeros is an arena that nobody has used.
class Arena {
 public:
  static constexpr std::size_t kSlotBytes = 4096;
  static constexpr std::size_t kHeaderBytes = 128;        // little is written to the second line
  static constexpr std::size_t kPieceBytes = 512 * 1024;  // the fastest from 256 KiB on

  /// For the sizes of whose parts a slot has room.
  static constexpr int kMaxRanks = kSlotBytes / sizeof(std::uint64_t);

  /// Bytes that an arena of so many ranks takes.
  static std::size_t bytes_for(int num_ranks);

  /// Where in it a rank's staging halves are, which it provides itself; of the rest, the first rank
  /// provides the pages before it hands the arena over.
  static std::size_t staging_offset(int rank);
  static constexpr std::size_t kStagingBytes = 2 * kPieceBytes;
  static void provide_control(const transport::SharedMemory& memory, int num_ranks);

  /// memory   of bytes_for(num_ranks), aligned to a page.
  Arena(std::span<std::byte> memory, int num_ranks);

  int num_ranks() const { return num_ranks_; }
  transport::Signal& progress(int rank) const;

  /// How operations of a kind stage (way.h); written by the first rank. index: below kWays.
  static constexpr std::size_t kWays = 64;
  std::atomic<Way>& way(std::size_t index) const;

  /// How the bytes of a kind of operation move; written by the first rank. index: below kRoutes.
  static constexpr std::size_t kRoutes = 32;
  std::atomic<Route>& route(std::size_t index) const;

  /// Those of the process that `rank` is.
  transport::Cores& cores(int rank) const;

  /// The first kHeaderBytes of slot `turn`, and the kSlotBytes behind them. turn: 0 or 1.
  std::span<std::byte> header(int rank, int turn) const;
  std::span<std::byte> payload(int rank, int turn) const;

  /// A half of the staging area, kPieceBytes.
  std::span<std::byte> piece(int rank, int turn) const;

 private:
  std::byte* of_rank(int rank) const;

  std::span<std::byte> memory_;
  int num_ranks_;
};

/// The leader (group rank 0) hands memory to all other members.
///
/// Errors   those of LocalPeers::give; where a peer has ended because of another's end, that is the
///          error.
void give(const Members& members, Use use, const transport::SharedMemory& memory);

/// What the leader has handed over; nothing where it has not within `time`. Errors likewise.
std::optional<transport::SharedMemory> take(const Members& members, Use use,
                                            std::chrono::milliseconds time);

}  // namespace trireme::collectives
