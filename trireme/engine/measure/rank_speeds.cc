#include "trireme/engine/measure/rank_speeds.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "trireme/engine/measure/range_runs.h"

namespace trireme::measure {

std::vector<double> speeds_of(std::span<const double> times_us) {
  constexpr double kAlike = 1.2, kSteps = 20;
  std::vector<double> speeds(times_us.size(), 1);
  if (times_us.empty()) return speeds;
  const auto [least, most] = std::ranges::minmax(times_us);
  if (least <= 0 || most < kAlike * least) return speeds;
  const double usual = median({times_us.begin(), times_us.end()});
  for (std::size_t r = 0; r < speeds.size(); ++r)
    speeds[r] = std::max(1.0, std::round(usual / times_us[r] * kSteps)) / kSteps;
  return speeds;
}

std::vector<double> rank_speeds(const Subject& subject, const RepeatOptions& options,
                                program::Capture capture) {
  const WriteGuard writes(subject.recording);
  RangeRuns runs(subject, {}, capture);
  subject.ranks.barrier();
  Repeats repeats(options);
  while (repeats.is_wanted()) {
    runs.backward(runs.forward());
    repeats.add(runs.take_time());
  }
  runs.drop(options.num_warmups);
  const double mine =
      std::ranges::min(runs.forward_us()[0]) + std::ranges::min(runs.backward_us()[0]);
  std::vector<double> times;
  for (int rank = 0; rank < subject.ranks.num_ranks(); ++rank)
    times.push_back(subject.ranks.from(rank, {mine}).front());
  return speeds_of(times);
}

}  // namespace trireme::measure
