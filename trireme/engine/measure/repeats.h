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
  std::chrono::microseconds min_time{5'000};  ///< Measured, of all repeats together.
  std::chrono::microseconds max_time{
      500'000};  ///< Passed, preparation included: then it is enough.
};

/// Counts repeats until they are enough: at least `min_repeats` and `min_time`, or the most.
class Repeats {
 public:
  explicit Repeats(const RepeatOptions& options) : options_(options) {}

  /// Whether to run once more.
  bool is_wanted() const;

  /// A run took so long.
  void add(Microseconds measured);

 private:
  const RepeatOptions options_;
  const Clock::time_point start_ = Clock::now();
  int num_runs_ = 0;
  Microseconds measured_{0};
};

/// Some measurements.
struct Timing {
  double median_us = 0;
  double least_us = 0;
  double spread = 0;  ///< Interquartile range over the median.
};

double median(std::vector<double> numbers);  ///< 0 of none.

Timing summary(std::vector<double> times_us);

/// How long `work` takes. `prepare` runs before each run of it and is not measured.
Timing time_repeats(const RepeatOptions& options, const std::function<void()>& prepare,
                    const std::function<void()>& work);

/// How long `work` takes, once.
Microseconds time_once(const std::function<void()>& work);

}  // namespace trireme::measure
