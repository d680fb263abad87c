#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/dtype.h"
#include "trireme/wire/collectives/description.h"

namespace trireme::bench {

using collectives::Collective;

/// What is measured: an operation over buffers of one size.
struct Case {
  Collective operation = Collective::kAllReduce;
  /// Of a rank's larger buffer, as nccl-tests counts: what an all_gather receives, what a
  /// reduce_scatter or all_to_all sends. 0 of a barrier.
  std::int64_t bytes = 0;
  Dtype dtype = Dtype::kF32;
  bool is_registered = false;  ///< In memory that the library was told of beforehand.

  /// Elements of the larger buffer.
  std::int64_t count() const { return bytes / static_cast<std::int64_t>(size_bytes(dtype)); }
  bool operator==(const Case&) const = default;
};

/// Whether the larger buffer is made of one part a rank, the smaller one being a part.
bool has_parts(Collective operation);

/// Whether all ranks end with the same bytes.
bool is_same_everywhere(Collective operation);

/// The operations that the benchmark knows, in the order in which it runs them.
std::span<const Collective> known_operations();

/// `all_reduce,barrier`. kInvalidArgument, naming the known ones, for any other.
std::vector<Collective> parse_operations(std::string_view text);

/// `4..256MiB`, a sweep by factors of 4 up to and with the end, or a list: `4,64KiB,1000`. Units B
/// (also none), KiB, MiB, GiB.
///
/// Errors   kInvalidArgument, naming the word, where it is no size from 1 B to 16 GiB.
std::vector<std::int64_t> parse_sizes(std::string_view text);

struct CaseOptions {
  std::vector<Collective> operations;
  std::vector<std::int64_t> sizes;
  Dtype dtype = Dtype::kF32;
  bool is_registered = false;
  int num_ranks = 2;
};

/// Every operation at every size. Sizes are rounded down to whole elements, and where a buffer has
/// a part for each rank to whole parts, but are at least one of them; what then is there twice is
/// left out. A barrier is there once.
std::vector<Case> make_cases(const CaseOptions& options);

/// Calls of a batch: fewer of large buffers, so that a batch takes tenths of a second at most.
int iterations_for(std::int64_t bytes);

/// Bytes that cross a rank's link at best, in buffers: nccl-tests' factor from algorithm bandwidth
/// to bus bandwidth.
double bus_factor(Collective operation, int num_ranks);

/// `65536` as `64 KiB`, `1000` as `1000 B`.
std::string size_text(std::int64_t bytes);

}  // namespace trireme::bench
