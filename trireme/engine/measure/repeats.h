#pragma once

#include <chrono>
#include <functional>
#include <vector>

namespace trireme::measure {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

/// How often something is run. Changes how far a median can be trusted, and how long it takes.
struct RepeatOptions {
  int num_warmups = 1;  ///< Runs that do not count.
  int min_repeats = 5;
  int max_repeats = 200;
  std::chrono::microseconds min_time{5'000};    ///< Median times repeats.
  std::chrono::microseconds max_time{500'000};  ///< Passed, all included.
};

/// Collects repeats until they are enough: at least `min_repeats`; then until `min_time` is reached
/// or one of the most. That asks for the median, so that one run which something else disturbed
/// does not count for many.
class Repeats {
 public:
  explicit Repeats(const RepeatOptions& options) : options_(options) {}

  /// Whether to run once more.
  bool is_wanted() const;

  /// A run took so long.
  void add(Microseconds measured);

  /// Of all runs but the warm-ups.
  const std::vector<double>& times_us() const { return times_us_; }

 private:
  const RepeatOptions options_;
  const Clock::time_point start_ = Clock::now();
  int num_warmups_ = 0;
  std::vector<double> times_us_;
};

/// Some measurements.
struct Timing {
  double median_us = 0;
  double least_us = 0;
  double spread = 0;  ///< Interquartile range over the median.
};

Timing summary(std::vector<double> times_us);

double median(std::vector<double> numbers);  ///< 0 of none.

/// How long `work` takes. `prepare` runs before each run of it and is not measured.
Timing time_repeats(const RepeatOptions& options, const std::function<void()>& prepare,
                    const std::function<void()>& work);

/// Processor time of this thread for `work`: what it takes on a core of its own, beside whatever
/// else uses the machine's memory and caches. Ranks that share a core make each other wait; that is
/// for the simulator to say, which knows when both have work.
Microseconds time_once(const std::function<void()>& work);

}  // namespace trireme::measure
