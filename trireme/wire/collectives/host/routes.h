#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "trireme/wire/collectives/host/exchange.h"
#include "trireme/wire/collectives/host/way.h"
#include "trireme/wire/collectives/request.h"

namespace trireme::collectives {

/// Whether operations are staged or read in place (way.h): the first rank times whole operations and
/// chooses for all, for each of two operations and each power of two of bytes. The choice is a hint:
/// where not all ranks have seen it, all stage.
///
/// Caller-synchronised.
class Routes {
 public:
  explicit Routes(const Meeting& meeting);

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

  Meeting meeting_;
  std::vector<Chooser<Route>> choosers_;  ///< By kind; on the first rank.
  std::optional<std::size_t> kind_;       ///< None: always staged.
  std::chrono::nanoseconds staged_in_{};
  std::chrono::steady_clock::time_point met_;
};

}  // namespace trireme::collectives
