#include "trireme/engine/measure/rank_speeds.h"

#include <algorithm>
#include <cmath>

#include "trireme/engine/measure/range_runs.h"

namespace trireme::measure {

std::vector<double> speeds_of(std::span<const double> times_us) {
  constexpr double kAlike = 0.2, kSteps = 20;
  const double usual = median({times_us.begin(), times_us.end()});
  std::vector<double> speeds;
  for (const double us : times_us) {
    const double speed = us > 0 && usual > 0 ? usual / us : 1;
    const bool is_alike = std::abs(speed - 1) < kAlike;
    speeds.push_back(is_alike ? 1 : std::max(1.0, std::round(speed * kSteps)) / kSteps);
  }
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
