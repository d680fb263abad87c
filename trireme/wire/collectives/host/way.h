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

/// Which way costs less: one of them for some pieces, the other for a few, then the better of the
/// two, again and again, since threads move between cores. Nothing but speed depends on it.
///
/// Caller-synchronised.
class WayChooser {
 public:
  /// Of the next piece.
  Way way() const { return way_; }

  /// Whether the times of what is staged or taken now are of use.
  bool wants_times() const { return left_ <= kSamples + 1; }

  /// Of a piece of all ranks. cost: of a byte, in any unit; of no use where no times were wanted.
  void end_piece(double cost) {
    double& least = least_[static_cast<std::size_t>(way_)];
    if (left_ <= kSamples) least = std::min(least, cost);
    if (--left_ > 0) return;
    if (!is_trial_) return turn(kTrial, true);
    const bool is_better = least < kClearly * least_[1 - static_cast<std::size_t>(way_)];
    period_ = is_better ? kFirstPeriod : std::min(2 * period_, kLongestPeriod);
    is_better ? begin(period_, false) : turn(period_, false);
    least_.fill(std::numeric_limits<double>::infinity());
  }

  static constexpr int kFirstPeriod = 8;
  static constexpr int kLongestPeriod = 64;
  static constexpr int kTrial = 4;  ///< In the first of these the others have yet to follow.

 private:
  static constexpr int kSamples = 2;
  static constexpr double kClearly = 0.9;

  void turn(int pieces, bool is_trial) {
    way_ = way_ == Way::kCached ? Way::kStreamed : Way::kCached;
    begin(pieces, is_trial);
  }
  void begin(int pieces, bool is_trial) {
    left_ = pieces;
    is_trial_ = is_trial;
  }

  Way way_ = Way::kCached;
  bool is_trial_ = false;
  int period_ = kFirstPeriod;
  int left_ = kFirstPeriod;  ///< Pieces, this one too.
  std::array<double, 2> least_ = {std::numeric_limits<double>::infinity(),
                                  std::numeric_limits<double>::infinity()};  ///< Costs, by way.
};

}  // namespace trireme::collectives
