#include "trireme/engine/measure/range_measure.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "trireme/engine/measure/forward_walk.h"
#include "trireme/engine/program/boundary.h"
#include "trireme/engine/program/stage_program.h"
#include "trireme/engine/program/step_losses.h"
#include "trireme/engine/program/weight_program.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/layout/manual.h"

namespace trireme::measure {
namespace {

class DroppingSink : public program::GradientSink {
 public:
  void accept(int, const at::Tensor&) override {}
};

/// The ranges as stages of a plan, run one microbatch at a time.
class RangeRuns {
 public:
  RangeRuns(const Subject& subject, std::span<const int> cuts)
      : graph_(subject.recording.graph),
        batch_(subject.batch),
        num_samples_(program::num_samples(graph_, batch_)),
        plan_(layout::make_manual_plan(graph_, "", cuts, {num_samples_, num_samples_, 1})),
        sites_(subject.recording, sink_),
        weights_(program::WeightProgram(subject.recording).weights(batch_, num_samples_)),
        totals_(program::total_weights(graph_, {weights_})),
        forward_us_(plan_.stages.size()),
        backward_us_(plan_.stages.size()) {
    for (int s = 0; s < num_stages(); ++s) {
      stages_.emplace_back(subject.recording, plan_, s, sites_);
    }
  }

  /// Runs a microbatch and keeps the times; returns what they add up to.
  Microseconds run() {
    std::vector<program::StageRun> runs;
    Microseconds total = forward(runs);
    return total + backward(std::move(runs));
  }

  /// Forgets the first `num` runs.
  void drop(int num) {
    for (auto* times : {&forward_us_, &backward_us_}) {
      for (std::vector<double>& series : *times) {
        series.erase(series.begin(), series.begin() + num);
      }
    }
  }

  std::vector<profile::RangeTime> ranges(const BusyRanks& ranks) const {
    std::vector<double> medians;
    for (const auto& times : {forward_us_, backward_us_}) {
      for (const std::vector<double>& series : times) medians.push_back(median(series));
    }
    medians = ranks.medians(medians);
    std::vector<profile::RangeTime> result;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      result.push_back(
          {plan_.stages[s].begin, plan_.stages[s].end, medians[s], medians[stages_.size() + s]});
    }
    return result;
  }

 private:
  int num_stages() const { return static_cast<int>(plan_.stages.size()); }

  Microseconds forward(std::vector<program::StageRun>& runs) {
    const program::MicrobatchInput input{batch_, num_samples_, {0, 0, 0}};
    std::vector<program::ValueMap> received(stages_.size());
    Microseconds total{0};
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const Microseconds time =
          time_once([&] { runs.push_back(stages_[s].forward(input, std::move(received[s]))); });
      forward_us_[s].push_back(time.count());
      total += time;
      for (const layout::Crossing& crossing : stages_[s].sends()) {
        const at::Tensor value = stages_[s].value(runs[s], crossing.value);
        for (std::size_t i = 1; i < crossing.stages.size(); ++i) {
          received[crossing.stages[i]][crossing.value] = program::copy_across(value);
        }
      }
    }
    return total;
  }

  Microseconds backward(std::vector<program::StageRun> runs) {
    std::vector<program::ValueMap> seeds;
    for (const program::StageProgram& stage : stages_) {
      seeds.push_back(program::loss_seeds(graph_, stage, weights_, totals_));
    }
    Microseconds total{0};
    for (std::size_t s = stages_.size(); s-- > 0;) {
      program::ValueMap gradients;
      const Microseconds time =
          time_once([&] { gradients = stages_[s].backward(std::move(runs[s]), seeds[s]); });
      backward_us_[s].push_back(time.count());
      total += time;
      for (const layout::Crossing& crossing : stages_[s].receives()) {
        const auto gradient = gradients.find(crossing.value);
        if (gradient == gradients.end()) continue;
        const int to = layout::previous_in_chain(crossing, static_cast<int>(s));
        seeds[to][crossing.value] = program::copy_across(gradient->second);
      }
    }
    return total;
  }

  const graph::Graph& graph_;
  const Batch& batch_;
  const std::int64_t num_samples_;
  const layout::Plan plan_;
  DroppingSink sink_;
  const program::SiteTable sites_;
  const std::vector<double> weights_;
  const std::vector<double> totals_;
  std::vector<program::StageProgram> stages_;
  std::vector<std::vector<double>> forward_us_;  ///< By stage.
  std::vector<std::vector<double>> backward_us_;
};

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
  const BufferGuard buffers(subject.recording);
  RangeRuns runs(subject, cuts);
  subject.ranks.barrier();
  Repeats repeats(options);
  while (repeats.is_wanted()) repeats.add(runs.run());
  runs.drop(options.num_warmups);
  return runs.ranges(subject.ranks);
}

}  // namespace trireme::measure
