#include "trireme/engine/measure/repeats.h"

#include <time.h>

#include <algorithm>

namespace trireme::measure {
namespace {

/// Between the two nearest where `part` falls between them. sorted: not empty.
double quantile(const std::vector<double>& sorted, double part) {
  const double position = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// That this thread has had so far.
Microseconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

bool Repeats::is_wanted() const {
  const auto num_repeats = static_cast<int>(times_us_.size());
  if (num_repeats < options_.min_repeats) return true;
  if (num_repeats >= options_.max_repeats || Clock::now() - start_ >= options_.max_time) {
    return false;
  }
  return median(times_us_) * num_repeats < Microseconds(options_.min_time).count();
}

void Repeats::add(Microseconds measured) {
  if (num_warmups_ < options_.num_warmups) {
    ++num_warmups_;
  } else {
    times_us_.push_back(measured.count());
  }
}

double median(std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  std::sort(numbers.begin(), numbers.end());
  return quantile(numbers, 0.5);
}

Timing summary(std::vector<double> times_us) {
  if (times_us.empty()) return {};
  std::sort(times_us.begin(), times_us.end());
  const double middle = quantile(times_us, 0.5);
  const double range = quantile(times_us, 0.75) - quantile(times_us, 0.25);
  return {middle, times_us.front(), middle > 0 ? range / middle : 0};
}

Microseconds time_once(const std::function<void()>& work) {
  const Microseconds start = processor_time();
  work();
  return processor_time() - start;
}

Timing time_repeats(const RepeatOptions& options, const std::function<void()>& prepare,
                    const std::function<void()>& work) {
  Repeats repeats(options);
  while (repeats.is_wanted()) {
    prepare();
    repeats.add(time_once(work));
  }
  return summary(repeats.times_us());
}

}  // namespace trireme::measure
