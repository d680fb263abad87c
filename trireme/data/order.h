#pragma once

#include <cstdint>

namespace trireme::data {

/// How an epoch goes through the samples.
enum class OrderKind : std::uint8_t {
  kShuffled,    ///< A permutation of its own for each epoch, keyed by the seed.
  kSequential,  ///< 0, 1, 2, ...; for evaluation.
};

/// Which sample comes at each position of an endless sequence of epochs: a pure function of (seed,
/// epoch, position), so that the place in the data is saved as one number and any rank can ask for
/// any microbatch. Immutable.
///
/// A global index g is position g mod n of epoch g / n. The permutation is computed, not stored: a
/// Feistel network of 8 rounds, whose round function is Philox keyed by (seed, epoch), permutes the
/// numbers of 2h bits, the fewest that hold n (at least 6); results of n and above are sent through
/// again until they fall below (cycle walking).
///
/// Cost     on average at most 4 walks of 8 Philox calls for n > 16, about 1 us; no memory.
/// Source   Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002, sections 3-5.
class SampleOrder {
 public:
  /// num_samples   1 .. 2^62, else kInvalidArgument.
  SampleOrder(std::int64_t num_samples, std::uint64_t seed, OrderKind kind = OrderKind::kShuffled);

  std::int64_t num_samples() const { return num_samples_; }

  /// The sample at `global_index`, in [0, num_samples). kInvalidArgument where it is negative.
  std::int64_t sample_at(std::int64_t global_index) const;

  /// The epoch of `global_index`: passes through all samples that came before.
  std::int64_t epoch_at(std::int64_t global_index) const { return global_index / num_samples_; }

 private:
  std::uint64_t permute(std::uint64_t x, std::uint64_t key) const;

  std::int64_t num_samples_;
  std::uint64_t seed_;
  OrderKind kind_;
  int half_bits_;
};

}  // namespace trireme::data
