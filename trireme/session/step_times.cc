#include "trireme/session/step_times.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "trireme/engine/measure/measurement.h"
#include "trireme/engine/memory/process_memory.h"

namespace trireme::session {
namespace {

/// A number of every rank, by rank.
std::vector<std::int64_t> of_ranks(const collectives::World& world, std::int64_t mine,
                                   const char* what) {
  std::vector<std::int64_t> result;
  for (const std::string& text : collectives::gather(world, std::to_string(mine), what)) {
    result.push_back(std::stoll(text));
  }
  return result;
}

std::int64_t microseconds(double seconds) { return static_cast<std::int64_t>(1e6 * seconds); }

}  // namespace

void StepTimes::add(const StepReport& report) {
  seconds_.push_back(report.seconds);
  wait_seconds_ += report.data_wait_seconds;
  compute_seconds_ += report.compute_seconds;
}

Measured StepTimes::measure(const collectives::World& world, std::int64_t data_bytes,
                            double predicted_compute_seconds) const {
  const double seconds = std::max(std::accumulate(seconds_.begin(), seconds_.end(), 0.0), 1e-9);
  const auto waits = of_ranks(world, microseconds(wait_seconds_), "waits");
  const auto compute = of_ranks(world, microseconds(compute_seconds_), "compute");
  Measured result{
      .median_step_ms = 1e3 * measure::median(seconds_),
      .data_wait_fraction = 1e-6 * static_cast<double>(*std::ranges::max_element(waits)) / seconds,
      .peak_bytes = of_ranks(world, memory::memory_use().peak_bytes - data_bytes, "peaks"),
      .resident_peak_bytes = of_ranks(world, memory::resident_peak_bytes(), "peaks")};
  if (!empty() && predicted_compute_seconds > 0) {
    const auto all = std::accumulate(compute.begin(), compute.end(), std::int64_t{0});
    result.compute_over_profile = 1e-6 * static_cast<double>(all) /
                                  static_cast<double>(seconds_.size()) / predicted_compute_seconds;
  }
  return result;
}

}  // namespace trireme::session
