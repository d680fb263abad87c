#include "trireme/engine/measure/repeats.h"

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

}  // namespace

bool Repeats::is_wanted() const {
  const int num_counted = num_runs_ - options_.num_warmups;
  if (num_counted < 1) return true;
  if (num_counted >= options_.max_repeats || Clock::now() - start_ >= options_.max_time) {
    return false;
  }
  return num_counted < options_.min_repeats || measured_ < options_.min_time;
}

void Repeats::add(Microseconds measured) {
  if (num_runs_++ >= options_.num_warmups) measured_ += measured;
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
  const Clock::time_point start = Clock::now();
  work();
  return Clock::now() - start;
}

Timing time_repeats(const RepeatOptions& options, const std::function<void()>& prepare,
                    const std::function<void()>& work) {
  std::vector<double> times;
  Repeats repeats(options);
  while (repeats.is_wanted()) {
    prepare();
    const Microseconds time = time_once(work);
    repeats.add(time);
    times.push_back(time.count());
  }
  times.erase(times.begin(), times.begin() + options.num_warmups);
  return summary(std::move(times));
}

}  // namespace trireme::measure
