#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "trireme/kernels/reduce/combine.h"

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::kernels::cuda {

inline constexpr int kMostRanks = 8;
inline constexpr int kMostBlocks = 16;
inline constexpr std::size_t kSliceBytes = 32 * 1024;

/// What a rank's kernels and those of the others meet in: memory of its GPU that all of them reach,
/// zeros at first.
struct OneShotRegion {
  struct alignas(128) Meeting {
    std::array<std::uint32_t, kMostRanks> arrived;  ///< Up to which epoch, by rank; they write it.
    std::uint32_t epoch;                            ///< Meetings of this block so far; its own.
  };
  std::array<Meeting, kMostBlocks> meetings;                    ///< By block.
  std::array<std::array<double, kMostBlocks>, 2> scales;        ///< By the epoch's last bit.
  std::array<std::array<std::uint64_t, kMostBlocks>, 2> calls;  ///< What is called, likewise.
  alignas(128) std::byte stage[2][kMostBlocks][kSliceBytes];    ///< Likewise.
};

/// How a buffer is cut, the same on all ranks: piece p, block b has the slice p * num_blocks + b.
struct OneShotShape {
  int num_blocks;
  std::int64_t num_pieces;
  std::int64_t slice_bytes;  ///< A multiple of 16.
};

constexpr OneShotShape one_shot_shape(std::int64_t bytes) {
  constexpr std::int64_t kBlockBytes = 2048;  // less is not worth a block
  constexpr auto kMost = static_cast<std::int64_t>(kSliceBytes);
  const auto cut = [](std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; };
  const std::int64_t blocks = std::clamp<std::int64_t>(cut(bytes, kBlockBytes), 1, kMostBlocks);
  const std::int64_t slice = std::clamp<std::int64_t>(cut(cut(bytes, blocks), 16) * 16, 16, kMost);
  return {.num_blocks = static_cast<int>(blocks),
          .num_pieces = std::max<std::int64_t>(cut(bytes, blocks * slice), 1),
          .slice_bytes = slice};
}

/// The ranks of a one-shot all-reduce, as one of them sees them.
struct OneShotRanks {
  std::array<OneShotRegion*, kMostRanks> regions{};  ///< By rank, in this GPU's addresses.
  int size = 1;
  int rank = 0;
  const std::uint32_t* is_aborted = nullptr;  ///< Not 0: kernels end, and the regions are spent.

  /// Becomes a rank + 1 that calls something else; then data is left as it is, and the regions are
  /// spent. In memory of the host; may be null.
  std::uint32_t* differs = nullptr;
};

/// data = the operation over the ranks' data, combined by THE tree (reduce/tree.h): the bits of
/// `combine` on a processor, but for which NaN a NaN is.
///
/// Each block copies its slice to its rank's stage, tells the others, waits for them, and combines
/// the slices of all ranks. The stage's halves take turns, so that one meeting per slice is enough:
/// who is at the next one has read this one. The count of meetings is in device memory, so a launch
/// can be captured in a CUDA graph and replayed, as often on all ranks.
///
/// reduction   is_reducible; its scales are not read, but `scale`, this rank's.
/// data        [count] in memory of the GPU, aligned to the element.
/// stream      of the current device. Launches on the same regions come one after another, in the
///             same order on all ranks, with the same arguments but `data` and `scale`.
/// Sharing     kernels of ranks that share a GPU must find room on it at once, up to kMostBlocks
///             blocks of 512 threads each, or they wait for ever. Processes without MPS take turns.
/// Errors      kInvalidArgument, kUnavailable without CUDA, kIo where it cannot be launched.
/// Cost        reads data of all ranks once; does not synchronise, allocates nothing.
void one_shot_all_reduce(const OneShotRanks& ranks, const ElementReduction& reduction, double scale,
                         std::byte* data, std::int64_t count, CUstream_st* stream);

}  // namespace trireme::kernels::cuda
