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

/// Where blocks lie: those of several phases in memory that a run keeps between them, others there or in memory of the
/// phase.
struct MemoryLayout {
  /// By block: from the start of what is kept; beyond `kept_bytes`, of the phase's own.
  std::vector<std::size_t> offsets;
  std::size_t kept_bytes = 0;
  std::array<std::size_t, kNumPhases> phase_bytes = {};
};

/// Blocks that are used at the same step do not overlap; a block begins at a multiple of 64 bytes, as torch's memory
/// does.
///
/// Cost   the square of the number of blocks.
MemoryLayout lay_out(const std::vector<Block>& blocks, const PhaseBegins& begins);

}  // namespace trireme::capture
