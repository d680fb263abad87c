#pragma once

#include <cstddef>
#include <vector>

namespace trireme::capture {

/// Memory that is wanted for some steps.
struct Block {
  std::size_t bytes = 0;
  int first = 0;  ///< Steps that use it, both included.
  int last = 0;
};

/// Where blocks lie: those of both phases in memory that a run keeps between them, others there or in memory of the
/// phase.
struct MemoryLayout {
  /// By block: from the start of what is kept; beyond `kept_bytes`, of the phase's own.
  std::vector<std::size_t> offsets;
  std::size_t kept_bytes = 0;
  std::size_t phase_bytes[2] = {0, 0};
};

/// Blocks that are used at the same step do not overlap; a block begins at a multiple of 64 bytes, as torch's memory
/// does.
///
/// num_forward   steps of the first phase.
/// Cost          the square of the number of blocks.
MemoryLayout lay_out(const std::vector<Block>& blocks, int num_forward);

}  // namespace trireme::capture
