#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace trireme::capture {

/// Memory that is wanted for some steps.
struct Block {
  std::size_t bytes = 0;
  int first = 0;  ///< Steps that use it, both included.
  int last = 0;
};

/// What is replayed at once: a forward, its backward or the first part of it, the second part.
inline constexpr int kNumPhases = 3;

/// The first step of each phase; a phase ends where the next begins.
using PhaseBegins = std::array<int, kNumPhases>;

/// The phase of a step.
int phase_at(const PhaseBegins& begins, int step);

/// Memory that a run has from a phase to a later one.
struct KeptRegion {
  int first = 0;  ///< Phases that have it, both included.
  int last = 0;
  std::size_t begin = 0;  ///< Among all that is kept.
  std::size_t bytes = 0;
};

/// Where blocks lie: those of several phases in the region of these, others in a region that their phase has, or in memory of
/// the phase.
struct MemoryLayout {
  /// By block: from the start of the first region; beyond `kept_bytes`, of the phase's own.
  std::vector<std::size_t> offsets;
  /// One after the other.
  std::array<KeptRegion, 3> regions = {{{0, 1}, {0, 2}, {1, 2}}};
  std::size_t kept_bytes = 0;  ///< Of all regions.
  std::array<std::size_t, kNumPhases> phase_bytes = {};
};

/// Blocks that are used at the same step do not overlap; a block begins at a multiple of 64 bytes, as torch's memory
/// does.
///
/// Cost   the square of the number of blocks.
MemoryLayout lay_out(const std::vector<Block>& blocks, const PhaseBegins& begins);

}  // namespace trireme::capture
