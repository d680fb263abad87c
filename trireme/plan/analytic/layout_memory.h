#pragma once

#include <cstdint>
#include <vector>

#include "trireme/plan/analytic/model_shape.h"
#include "trireme/plan/analytic/pipeline_clock.h"
#include "trireme/plan/analytic/train_layout.h"

namespace trireme::analytic {

/// Bytes of a rank at its fullest, by kind.
struct MemoryByKind {
  double values = 0;  ///< Parameters in the type of products.
  double gradients = 0;
  double state = 0;        ///< Of Adam, with f32 copies.
  double activations = 0;  ///< Kept for backwards.
  double working =
      0;  ///< Of the block or head that runs: logits, recomputed activations, gathered parameters; of sums of gradients.
  double driver = 0;  ///< Of the device's driver.
  double total() const { return values + gradients + state + activations + working + driver; }
};

/// Bytes that a block keeps of a microbatch for its backward, per rank of a tensor group. With 16 bits, all kept, biases,
/// dropout and scores, of s tokens, b samples, h hidden, a heads: sbh(34 + 5as/h), of which tensor groups share all but 10 sbh,
/// sequence parallel all; selective: without 5as/h; full: 2 sbh.
///
/// Source   Korthikanti et al., arXiv 2205.05198, section 4; fewer for grouped queries, gates and no dropout, by the same count.
double block_activation_bytes(const ModelShape& shape, const TrainLayout& layout);

/// First block of each part of the model; parts differ by one block at most, the longer ones in the
/// middle, since embedding and head are at the ends.
std::vector<std::int64_t> split_blocks(std::int64_t num_blocks, std::int64_t num_parts);

/// Parameters of a rank, of its tensor group's part of its stages.
std::vector<double> rank_parameters(const ModelShape& shape, const TrainLayout& layout);

/// Memory of every rank of a pipeline.
std::vector<MemoryByKind> rank_memory(const ModelShape& shape, const TrainLayout& layout,
                                      PipelineClocks& clocks);

}  // namespace trireme::analytic
