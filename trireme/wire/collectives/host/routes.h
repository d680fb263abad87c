#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trireme/wire/collectives/host/exchange.h"
#include "trireme/wire/collectives/host/way.h"
#include "trireme/wire/collectives/members.h"
#include "trireme/wire/collectives/request.h"
#include "trireme/wire/system/shared_memory.h"

namespace trireme::collectives {

/// Whether operations are staged or read in place (way.h): the first rank times whole operations and
/// chooses for all, for each of two operations and each power of two of bytes. The choice is a hint:
/// where not all ranks have seen it, all stage.
///
/// Caller-synchronised.
class Routes {
 public:
  explicit Routes(const ArenaView& view);

  /// The next operation. has_choice: it can go either way.
  void begin(const Request& request, bool has_choice);

  Route route() const;

  /// Does what this rank does before it meets the others.
  template <typename Part>
  void before_meeting(Part part) {
    using Clock = std::chrono::steady_clock;
    const auto start = is_timed() ? Clock::now() : Clock::time_point();
    part();
    if (is_timed()) staged_in_ = Clock::now() - start;
  }

  void note_met();  ///< All have begun.
  void end();

 private:
  bool is_timed() const { return kind_ && !choosers_.empty() && choosers_[*kind_].wants_cost(); }

  ArenaView view_;
  std::vector<Chooser<Route>> choosers_;  ///< By kind; on the first rank.
  std::optional<std::size_t> kind_;       ///< None: always staged.
  std::chrono::nanoseconds staged_in_{};
  std::chrono::steady_clock::time_point met_;
};

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
