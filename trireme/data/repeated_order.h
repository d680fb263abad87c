#pragma once

#include <cstdint>

#include "trireme/data.h"
#include "trireme/data/order.h"

namespace trireme::data {

/// The samples of a training by place, each used several times (`repeat`): a pure function of (seed, batch, place).
/// Immutable.
///
/// N = 8 samples, T = 2 times, batches of B = 3, blocks of S = 2 batches; letters in the order that SampleOrder has in
/// this epoch, a row is a batch:
///
///     block 0   pass 0   a b c     pass 1   d b f     a column keeps its samples; its rows change places
///                        d e f              a e c
///     block 1   pass 0   g h       pass 1       h     L = 2: where the batch goes on
///                                            g
///
/// A pass over the last block, L = R B + t, begins t columns behind the one before. Its first R B samples keep their
/// columns; the t others go where a column has one place more.
///
/// Cost     of `sample_at` two or three of SampleOrder's.
class RepeatedOrder {
 public:
  /// batch    B, the samples of a step of all ranks.
  /// Errors   kInvalidArgument for fewer than 1 sample, an empty batch or block, times below 0 (0 is 1), more than 2^62 places in an epoch.
  RepeatedOrder(std::int64_t num_samples, std::uint64_t seed, OrderKind kind,
                const SampleRepeats& repeats, std::int64_t batch);

  /// Of the place `global_index` in the endless sequence of epochs. kInvalidArgument where it is negative.
  Sample sample_at(std::int64_t global_index) const;

 private:
  struct Pass;
  std::int64_t within_block(const Pass& pass, std::int64_t place) const;

  SampleOrder order_;
  std::uint64_t seed_;
  std::int64_t times_;
  std::int64_t batch_;
  std::int64_t block_;  ///< Samples of a full one: whole batches.
};

}  // namespace trireme::data
