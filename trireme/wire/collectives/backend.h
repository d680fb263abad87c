#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "trireme/wire/collectives/request.h"
#include "trireme/wire/endpoint/work.h"

namespace trireme::collectives {

/// How a group's operations are done: over memory that all its ranks share, or by messages.
///
/// Threads  `submit` and `allocate` from one thread at a time, the rest from any.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Operations are done in the order of the calls. Errors reach the work.
  virtual transport::WorkPtr submit(Request request) = 0;

  /// Memory of this rank that is best for operations, until the backend ends. Every rank calls it;
  /// blocks.
  virtual std::span<std::byte> allocate(std::size_t bytes, std::chrono::milliseconds deadline) = 0;

  /// World ranks for which the operation under way waits at the moment, in order.
  virtual std::vector<int> missing() const = 0;
};

}  // namespace trireme::collectives
