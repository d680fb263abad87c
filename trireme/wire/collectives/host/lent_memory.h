#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trireme/wire/collectives/host/exchange.h"
#include "trireme/wire/collectives/members.h"
#include "trireme/wire/system/shared_memory.h"

namespace trireme::collectives {

/// What the ranks of a group lend each other for an operation, read in their processes.
class LentMemory {
 public:
  explicit LentMemory(const Members& members);

  /// Whether this rank may read in the process of each other one.
  bool may_read() const { return !processes_.empty(); }

  /// From now on it may not.
  void give_up() { processes_.clear(); }

  /// What the others have for this rank. Blocks while it copies.
  ///
  /// addresses   by group rank, of what each lends.
  ///
  /// Returns  whether all of it could be read.
  bool read(std::span<const Exchange::Move> moves, std::span<const std::uint64_t> addresses) const;

 private:
  int own_;
  std::vector<transport::ProcessMemory> processes_;  ///< By group rank; empty: may not read.
};

}  // namespace trireme::collectives
