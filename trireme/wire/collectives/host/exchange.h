#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trireme/kernels/reduce/combine.h"
#include "trireme/wire/collectives/host/arena.h"
#include "trireme/wire/collectives/host/way.h"
#include "trireme/wire/collectives/request.h"

namespace trireme::collectives {

using Bytes = std::span<std::byte>;

/// Slices of at most `slice` bytes that so many bytes make.
inline std::int64_t num_slices(std::size_t bytes, std::size_t slice) {
  return static_cast<std::int64_t>((bytes + slice - 1) / slice);
}

/// The slice of that index; empty behind the end.
template <typename T>
std::span<T> slice_of(std::span<T> bytes, std::int64_t index, std::size_t slice) {
  const std::size_t begin = std::min(bytes.size(), static_cast<std::size_t>(index) * slice);
  return bytes.subspan(begin, std::min(slice, bytes.size() - begin));
}

/// Where ranks stage what they have for each other: of each half of the arena, a slice per other
/// rank.
class SlicedStaging {
 public:
  explicit SlicedStaging(const Arena& arena) : arena_(arena) {
    constexpr std::size_t kLine = 64;
    const auto others = static_cast<std::size_t>(std::max(1, arena.num_ranks() - 1));
    slice_ = Arena::kPieceBytes / others / kLine * kLine;
  }

  std::size_t slice() const { return slice_; }  ///< Bytes.

  /// What rank `from` stages for rank `to`, another.
  Bytes place(int from, int half, int to) const {
    const auto index = static_cast<std::size_t>(to < from ? to : to - 1);
    return arena_.piece(from, half).subspan(slice_ * index, slice_);
  }

 private:
  Arena arena_;
  std::size_t slice_;
};

/// to: at least as long.
inline void copy(std::span<const std::byte> from, Bytes to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

/// To where others read it.
inline void copy_in(std::span<const std::byte> from, Bytes to, Way way) {
  if (way == Way::kCached || from.empty()) return copy(from, to);
  kernels::copy_streaming(from.data(), to.data(), from.size());
}

/// Of an operation from which this rank takes `total` bytes: past the caches where they would not
/// hold them anyway, which spares the fetch of every line that is written.
inline void copy_out(std::span<const std::byte> from, Bytes to, std::size_t total) {
  constexpr std::size_t kBeyondCaches = std::size_t{4} << 20;
  if (total < kBeyondCaches) return copy(from, to);
  if (!from.empty()) kernels::copy_streaming(from.data(), to.data(), from.size());
}

/// What a rank does with the others in an operation: a piece after the other. HostRank drives it:
///
///     stage(0)   all meet   [combine(0)   all meet]   take(0)   stage(1)   all meet   ...
///
/// Where the memory of all ranks is shared, `share` stands in place of all that, between two
/// meetings; where it can be read only, the `moves` of an operation that has such.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// Whether the ranks have to tell each other sizes before the first piece is staged: `announce`
  /// before the first meeting, `num_pieces` after it. `hear` comes after it in any case, before
  /// anything is combined. turn: of the slots.
  virtual bool hears_first() const { return false; }
  virtual void announce(int) {}
  virtual void hear(int) {}

  virtual std::int64_t num_pieces() const = 0;

  /// Writes what others need of a piece to this rank's half of the staging area.
  virtual void stage(std::int64_t piece, int half, Way way) = 0;

  /// Whether there is a step between: each rank combines its part for all.
  virtual bool combines_for_all() const { return false; }
  virtual void combine(std::int64_t, int) {}

  /// Takes from the others' halves what this rank needs of a piece.
  virtual void take(std::int64_t piece, int half) = 0;

  /// This rank's memory that the others could read or write, and how many bytes another's has; empty
  /// where there is none such.
  virtual std::span<const std::byte> sharable() const { return {}; }
  virtual std::size_t sharable_bytes(int) const { return sharable().size(); }

  /// The whole operation over memory that all see. by_rank: where each rank's `sharable` lies.
  virtual void share(std::span<const std::span<std::byte>> by_rank) = 0;

  /// What this rank takes of a rank's `sharable`: as many bytes as `to` has.
  struct Move {
    int from;
    std::size_t offset;
    std::span<std::byte> to;
  };

  /// The whole operation, where it changes no bytes.
  virtual std::optional<std::vector<Move>> moves() const { return std::nullopt; }
};

/// The arena, as one rank of it sees it.
struct ArenaView {
  Arena arena;
  int rank;

  int size() const { return arena.num_ranks(); }
};

/// What the ranks, which have announced a reduction by `op`, multiply their elements by; empty but
/// for a scaled sum.
std::vector<double> scales_of(const ArenaView& view, kernels::ReduceOp op, int turn);

// Each for one request, whose memory outlives it.
std::unique_ptr<Exchange> make_one_shot(const ArenaView& view, const Request& request);
std::unique_ptr<Exchange> make_two_shot(const ArenaView& view, const Request& request);
std::unique_ptr<Exchange> make_reduce_scatter(const ArenaView& view, const Request& request);
std::unique_ptr<Exchange> make_all_gather(const ArenaView& view, const Request& request);
std::unique_ptr<Exchange> make_broadcast(const ArenaView& view, const Request& request);
std::unique_ptr<Exchange> make_all_to_all(const ArenaView& view, const Request& request);

}  // namespace trireme::collectives
