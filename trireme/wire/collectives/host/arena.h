#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/wire/collectives/host/way.h"
#include "trireme/wire/system/shared_memory.h"
#include "trireme/wire/system/signal.h"

namespace trireme::collectives {

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

}  // namespace trireme::collectives
