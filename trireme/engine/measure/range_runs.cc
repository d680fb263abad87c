#include "trireme/engine/measure/range_runs.h"

#include <algorithm>
#include <utility>

#include "trireme/engine/program/step_losses.h"
#include "trireme/engine/program/weight_program.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::measure {
namespace {

constexpr int kUntilCaptured = 2;  ///< Microbatches: one that is listened to, one that is compared.

}  // namespace

RangeRuns::RangeRuns(const Subject& subject, std::span<const int> cuts, program::Capture capture)
    : batch_(subject.batch),
      num_samples_(program::num_samples(subject.recording.graph, batch_)),
      plan_(layout::make_manual_plan(subject.recording.graph, "", cuts,
                                     {num_samples_, num_samples_, 1})),
      sites_(subject.recording, sink_),
      totals_(program::total_weights(
          subject.recording.graph,
          {program::WeightProgram(subject.recording).weights(batch_, {num_samples_})})),
      stages_(subject.recording, plan_, sites_, {.capture = capture}),
      forward_us_(plan_.stages.size()),
      backward_us_(plan_.stages.size()) {
  if (capture == program::Capture::kOff) return;
  const WriteGuard writes(subject.recording);
  for (int i = 0; i < kUntilCaptured; ++i) backward(forward());
  forget();
}

bool RangeRuns::is_captured() const {
  return std::ranges::any_of(stages_.stages(), [](const program::StageProgram& stage) {
    return stage.capture_report().num_replayed > 0;
  });
}

program::StageChain::Around RangeRuns::timed(std::vector<std::vector<double>>& times) {
  return [this, &times](int stage, const std::function<void()>& run) {
    const Microseconds time = time_once(run);
    times[stage].push_back(time.count());
    time_ += time;
  };
}

RangeRuns::Microbatch RangeRuns::forward() {
  return stages_.forward({batch_, {num_samples_}, {0, 0, 0}}, timed(forward_us_));
}

void RangeRuns::backward(Microbatch runs) {
  stages_.backward(std::move(runs), num_samples_, totals_, timed(backward_us_));
}

Microseconds RangeRuns::take_time() { return std::exchange(time_, Microseconds{0}); }

void RangeRuns::forget() {
  for (auto* times : {&forward_us_, &backward_us_}) {
    for (std::vector<double>& series : *times) series.clear();
  }
  time_ = Microseconds{0};
}

void RangeRuns::drop(int num) {
  for (auto* times : {&forward_us_, &backward_us_}) {
    for (std::vector<double>& series : *times) series.erase(series.begin(), series.begin() + num);
  }
}

}  // namespace trireme::measure
