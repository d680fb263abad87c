#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace trireme::collectives {

/// How a rank writes what others read next: into its caches, or past them. Where the ranks' cores
/// share a cache the first is faster. Where they do not, taking lines that another core has just
/// written costs up to five times as much as taking them from memory.
enum class Way : std::uint8_t { kCached, kStreamed };

/// How bytes come to a rank that needs them: staged by the one that has them and copied again, or
/// read in its process, which costs a call of the system for each rank and ends with a meeting.
enum class Route : std::uint8_t { kStaged, kLent };

/// Which of two choices costs less: one of them for some turns, the other for a few, then the better
/// of the two, again and again, since threads move between cores. Nothing but speed depends on it.
///
/// Choice   an enumeration of two values, 0 and 1; 0 comes first.
///
/// Caller-synchronised.
template <typename Choice>
class Chooser {
 public:
  /// samples   turns of each trial whose costs are compared: the least of them counts.
  explicit Chooser(int samples = 2) : samples_(samples) {}

  /// Of the next turn.
  Choice choice() const { return choice_; }

  /// Whether the cost of this turn is of use.
  bool wants_cost() const { return left_ <= samples_ + 1; }

  /// A turn is over. cost: in any unit; of no use where none was wanted.
  void end_turn(double cost) {
    double& least = least_[static_cast<std::size_t>(choice_)];
    if (left_ <= samples_) least = std::min(least, cost);
    if (--left_ > 0) return;
    if (!is_trial_) return change(samples_ + kFollowing, true);
    const bool is_better = least < kClearly * least_[1 - static_cast<std::size_t>(choice_)];
    period_ = is_better ? kFirstPeriod : std::min(2 * period_, kLongestPeriod);
    is_better ? begin(period_, false) : change(period_, false);
    least_.fill(std::numeric_limits<double>::infinity());
  }

  static constexpr int kFirstPeriod = 8;
  static constexpr int kLongestPeriod = 64;

 private:
  static constexpr int kFollowing = 2;  ///< Turns of a trial until all ranks have followed.
  static constexpr double kClearly = 0.9;

  void change(int turns, bool is_trial) {
    choice_ = static_cast<Choice>(1 - static_cast<int>(choice_));
    begin(turns, is_trial);
  }
  void begin(int turns, bool is_trial) {
    left_ = turns;
    is_trial_ = is_trial;
  }

  int samples_;
  Choice choice_{};
  bool is_trial_ = false;
  int period_ = kFirstPeriod;
  int left_ = kFirstPeriod;  ///< Turns, this one too.
  std::array<double, 2> least_ = {std::numeric_limits<double>::infinity(),
                                  std::numeric_limits<double>::infinity()};  ///< By choice.
};

}  // namespace trireme::collectives
