#include "trireme/engine/measure/range_runs.h"

#include <utility>

#include "trireme/engine/program/step_losses.h"
#include "trireme/engine/program/weight_program.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::measure {

RangeRuns::RangeRuns(const Subject& subject, std::span<const int> cuts)
    : graph_(subject.recording.graph),
      batch_(subject.batch),
      num_samples_(program::num_samples(graph_, batch_)),
      plan_(layout::make_manual_plan(graph_, "", cuts, {num_samples_, num_samples_, 1})),
      sites_(subject.recording, sink_),
      totals_(program::total_weights(
          graph_, {program::WeightProgram(subject.recording).weights(batch_, num_samples_)})),
      forward_us_(plan_.stages.size()),
      backward_us_(plan_.stages.size()) {
  for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
    stages_.emplace_back(subject.recording, plan_, static_cast<int>(s), sites_);
  }
}

RangeRuns::Microbatch RangeRuns::forward() {
  const program::MicrobatchInput input{batch_, num_samples_, {0, 0, 0}};
  std::vector<program::ValueMap> received(stages_.size());
  Microbatch runs;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const Microseconds time =
        time_once([&] { runs.push_back(stages_[s].forward(input, std::move(received[s]))); });
    forward_us_[s].push_back(time.count());
    time_ += time;
    for (const layout::Crossing& crossing : stages_[s].sends()) {
      const at::Tensor value = stages_[s].value(runs[s], crossing.value);
      for (std::size_t i = 1; i < crossing.stages.size(); ++i) {
        received[crossing.stages[i]][crossing.value] = program::copy_across(value);
      }
    }
  }
  return runs;
}

void RangeRuns::backward(Microbatch runs) {
  std::vector<program::ValueMap> seeds;
  for (const program::StageProgram& stage : stages_) {
    seeds.push_back(program::loss_seeds(graph_, stage, num_samples_, totals_));
  }
  for (std::size_t s = stages_.size(); s-- > 0;) {
    program::ValueMap gradients;
    const Microseconds time =
        time_once([&] { gradients = stages_[s].backward(std::move(runs[s]), seeds[s]); });
    backward_us_[s].push_back(time.count());
    time_ += time;
    for (const layout::Crossing& crossing : stages_[s].receives()) {
      const auto gradient = gradients.find(crossing.value);
      if (gradient == gradients.end()) continue;
      const int to = layout::previous_in_chain(crossing, static_cast<int>(s));
      seeds[to][crossing.value] = program::copy_across(gradient->second);
    }
  }
}

Microseconds RangeRuns::take_time() { return std::exchange(time_, Microseconds{0}); }

void RangeRuns::drop(int num) {
  for (auto* times : {&forward_us_, &backward_us_}) {
    for (std::vector<double>& series : *times) series.erase(series.begin(), series.begin() + num);
  }
}

}  // namespace trireme::measure
