#include "trireme/engine/measure/range_measure.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trireme/engine/measure/forward_walk.h"
#include "trireme/engine/measure/range_runs.h"
#include "trireme/plan/graph/cuts.h"

namespace trireme::measure {
namespace {

std::vector<profile::RangeTime> ranges_of(const RangeRuns& runs, const BusyRanks& ranks) {
  std::vector<double> medians;
  for (const auto* times : {&runs.forward_us(), &runs.backward_us()}) {
    for (const std::vector<double>& series : *times) medians.push_back(median(series));
  }
  medians = ranks.medians(medians);
  const std::vector<layout::Stage>& stages = runs.plan().stages;
  std::vector<profile::RangeTime> result;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    result.push_back({stages[s].begin, stages[s].end, medians[s], medians[stages.size() + s]});
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

std::vector<profile::RangeTime> measure_ranges(const Subject& subject, std::span<const int> cuts,
                                               const RepeatOptions& options) {
  const WriteGuard writes(subject.recording);
  RangeRuns runs(subject, cuts);
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

}  // namespace trireme::measure
