#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "benchmarks/wire/cases.h"

namespace trireme::bench {

/// A rank's memory for a case. Zeros, or what the last case left.
///
///     operation                send         recv
///     all_reduce, broadcast    all          none: in place
///     reduce_scatter           all          a part
///     all_gather               a part       all
///     all_to_all               all          all
///     barrier                  none         none
struct Buffers {
  std::span<std::byte> send;
  std::span<std::byte> recv;
};

/// An operation that is ready to run, again and again.
struct Prepared {
  std::function<void()> run;  ///< Blocks until the result is there.
  /// Starts it, sleeps for that long, then waits for the result. None where the library cannot.
  std::function<void(std::chrono::microseconds)> run_beside_sleep;
  std::span<const std::byte> result;  ///< Where it is.
  std::int64_t first = 0;  ///< Its position in the larger buffer, where it is a part of that.
};

/// One rank of a library whose collectives are measured.
///
/// Threads  caller-synchronised.
class Contender {
 public:
  virtual ~Contender() = default;

  virtual int rank() const = 0;
  virtual int num_ranks() const = 0;

  /// Nothing where the library has no such operation in that dtype; so on all ranks.
  ///
  /// buffers   outlive what is returned. A broadcast's root is rank 0.
  virtual std::optional<Prepared> prepare(const Case& one, const Buffers& buffers) = 0;

  /// Memory that the library was told of beforehand, its own until the end; nothing where it has no
  /// such kind, and the case is run in ordinary memory.
  virtual std::optional<std::span<std::byte>> registered(std::size_t bytes) = 0;

  /// Blocks until all ranks have come here.
  virtual void barrier() = 0;
};

}  // namespace trireme::bench
