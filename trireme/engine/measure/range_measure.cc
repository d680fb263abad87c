#include "trireme/engine/measure/range_measure.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "trireme/engine/measure/range_runs.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/plan/graph/cuts.h"

namespace trireme::measure {

namespace {

/// Not the median: a step is a sum of many, among them those that take longer now and then.
double mean(const std::vector<double>& times_us) {
  if (times_us.empty()) return 0;
  return std::accumulate(times_us.begin(), times_us.end(), 0.0) /
         static_cast<double>(times_us.size());
}

std::vector<profile::RangeTime> ranges_of(const RangeRuns& runs, const BusyRanks& ranks) {
  std::vector<double> means;
  for (const auto* times : {&runs.forward_us(), &runs.backward_us()}) {
    for (const std::vector<double>& series : *times) means.push_back(mean(series));
  }
  means = ranks.medians(means);
  const std::vector<layout::Stage>& stages = runs.plan().stages;
  std::vector<profile::RangeTime> result;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    result.push_back({stages[s].begin, stages[s].end, means[s], means[stages.size() + s]});
  }
  return result;
}

double sum_us(const std::vector<profile::RangeTime>& ranges) {
  double sum = 0;
  for (const profile::RangeTime& range : ranges) sum += range.forward_us + range.backward_us;
  return sum;
}

}  // namespace

std::optional<int> middle_cut(const graph::Graph& graph, std::span<const double> node_us) {
  const double half = std::accumulate(node_us.begin(), node_us.end(), 0.0) / 2;
  const std::vector<bool> is_allowed = graph::allowed_cuts(graph);
  std::optional<int> best;
  double before = 0, best_distance = 0;
  for (std::size_t cut = 1; cut < node_us.size(); ++cut) {
    before += node_us[cut - 1];
    const double distance = std::abs(before - half);
    if (!is_allowed[cut] || (best && distance >= best_distance)) continue;
    best = static_cast<int>(cut);
    best_distance = distance;
  }
  return best;
}

std::vector<profile::RangeTime> measure_ranges(const Subject& subject, RangeRuns& runs,
                                               const RepeatOptions& options) {
  const WriteGuard writes(subject.recording);
  runs.forget();
  subject.ranks.barrier();
  Repeats repeats(options);
  while (repeats.is_wanted()) {
    runs.backward(runs.forward());
    repeats.add(runs.take_time());
  }
  runs.drop(options.num_warmups);
  return ranges_of(runs, subject.ranks);
}

std::vector<profile::RangeTime> middle_visit(std::vector<std::vector<profile::RangeTime>> visits) {
  std::ranges::sort(visits, {}, sum_us);
  return visits[visits.size() / 2];
}

namespace {

constexpr std::int64_t kBeyondCaches = std::int64_t{256} << 20;
constexpr std::int64_t kMostHeld = 8;

/// Bytes that a microbatch keeps after its forward; the same on all ranks.
std::int64_t activation_bytes(const Subject& subject) {
  std::int64_t bytes = 0;
  subject.ranks.barrier();
  if (subject.ranks.is_first()) {
    RangeRuns runs(subject, {});
    runs.backward(runs.forward());  // what is made once is there
    const std::int64_t before = memory::memory_use().live_bytes;
    RangeRuns::Microbatch microbatch = runs.forward();
    bytes = memory::memory_use().live_bytes - before;
    runs.backward(std::move(microbatch));
  }
  subject.ranks.barrier();
  return std::stoll(subject.ranks.from_first(std::to_string(bytes)));
}

void run_held(RangeRuns& runs, std::int64_t count) {
  std::vector<RangeRuns::Microbatch> held;
  for (std::int64_t i = 0; i < count; ++i) held.push_back(runs.forward());
  for (RangeRuns::Microbatch& microbatch : held) runs.backward(std::move(microbatch));
}

/// At least 1.
double times_as_long(double us, double than_us) {
  return than_us > 0 ? std::max(1.0, us / than_us) : 1;
}

}  // namespace

std::optional<profile::HeldTimes> measure_held(const Subject& subject,
                                               const RepeatOptions& options) {
  const WriteGuard writes(subject.recording);
  const std::int64_t bytes = activation_bytes(subject);
  if (bytes <= 0 || bytes >= kBeyondCaches) return std::nullopt;
  const std::int64_t count = std::clamp<std::int64_t>(kBeyondCaches / bytes, 2, kMostHeld);
  RangeRuns alone(subject, {}), held(subject, {});
  Repeats repeats(options);
  while (repeats.is_wanted()) {
    alone.backward(alone.forward());
    run_held(held, count);
    repeats.add(alone.take_time() + held.take_time());
  }
  alone.drop(options.num_warmups);
  held.drop(options.num_warmups * static_cast<int>(count));
  const std::vector<double> medians =
      subject.ranks.medians({median(alone.forward_us()[0]), median(held.forward_us()[0]),
                             median(alone.backward_us()[0]), median(held.backward_us()[0])});
  return profile::HeldTimes{.one_bytes = bytes,
                            .held_bytes = count * bytes,
                            .forward = times_as_long(medians[1], medians[0]),
                            .backward = times_as_long(medians[3], medians[2])};
}

std::optional<profile::UncapturedTimes> measure_uncaptured(const Subject& subject, RangeRuns& runs,
                                                           std::span<const int> cuts,
                                                           const RepeatOptions& options) {
  if (subject.ranks.from_first(runs.is_captured() ? "1" : "0") == "0") return std::nullopt;
  const WriteGuard writes(subject.recording);
  RangeRuns usual(subject, cuts);
  runs.forget();
  subject.ranks.barrier();
  Repeats repeats(options);
  while (repeats.is_wanted()) {
    usual.backward(usual.forward());
    runs.backward(runs.forward());
    repeats.add(usual.take_time() + runs.take_time());
  }
  usual.drop(options.num_warmups);
  runs.drop(options.num_warmups);
  profile::RangeTime uncaptured, captured;
  for (const auto& [ranges, sum] : {std::pair(&usual, &uncaptured), {&runs, &captured}}) {
    for (const profile::RangeTime& range : ranges_of(*ranges, subject.ranks)) {
      sum->forward_us += range.forward_us;
      sum->backward_us += range.backward_us;
    }
  }
  return profile::UncapturedTimes{
      .forward = times_as_long(uncaptured.forward_us, captured.forward_us),
      .backward = times_as_long(uncaptured.backward_us, captured.backward_us)};
}

}  // namespace trireme::measure
