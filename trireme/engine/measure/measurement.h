#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "trireme/engine/record/recording.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/wire/collectives/group.h"

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

/// The ranks that measure at the same time, each on its own cores but on shared memory and caches:
/// they do the same things in the same order, so that a node is measured while the others run it.
///
/// All members block; every rank calls them in the same order. Errors are the group's.
class BusyRanks {
 public:
  /// This rank alone.
  BusyRanks() = default;

  /// group   all ranks that measure; outlives this. watch: of every wait for another rank.
  BusyRanks(collectives::Group& group, transport::WatchOptions watch)
      : group_(&group), watch_(std::move(watch)) {}

  int num_ranks() const { return group_ == nullptr ? 1 : group_->size(); }
  int rank() const { return group_ == nullptr ? 0 : group_->group_rank(); }
  bool is_first() const { return rank() == 0; }

  const transport::WatchOptions& watch() const { return watch_; }

  /// Until all are here.
  void barrier() const;

  /// The median over ranks of each number; the same on all. mine: of the same size on all.
  std::vector<double> medians(const std::vector<double>& mine) const;

  /// Everybody's text, by rank.
  std::vector<std::string> gather(const std::string& mine) const;

  /// What one rank has, as many numbers on all.
  std::vector<double> from(int rank, std::vector<double> mine) const;

  /// What the first rank has.
  std::string from_first(const std::string& mine) const { return gather(mine).front(); }

 private:
  void wait(const transport::WorkPtr& work, const char* operation) const;

  collectives::Group* group_ = nullptr;
  transport::WatchOptions watch_;
};

/// What is measured, and by whom. Refers to things that outlive it.
struct Subject {
  const record::Recording& recording;  ///< In train mode, as it was recorded.
  const Batch& batch;                  ///< One microbatch, with its step scalars.
  const BusyRanks& ranks;
};

/// Puts what forwards write, buffers and rescaled parameters, back as it was.
class WriteGuard {
 public:
  explicit WriteGuard(const record::Recording& recording);

 private:
  record::TensorKeeper tensors_;
};

}  // namespace trireme::measure
