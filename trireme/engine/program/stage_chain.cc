#include "trireme/engine/program/stage_chain.h"

#include <utility>

#include "trireme/engine/program/boundary_copy.h"
#include "trireme/engine/program/step_losses.h"

namespace trireme::program {
namespace {

void run_within(const StageChain::Around& around, int stage, const std::function<void()>& run) {
  if (around) {
    around(stage, run);
  } else {
    run();
  }
}

}  // namespace

StageChain::StageChain(const record::Recording& recording, const layout::Plan& plan,
                       const SiteTable& sites, Options options)
    : graph_(recording.graph), scratch_(std::move(options.scratch)) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    stages_.emplace_back(recording, plan, static_cast<int>(s), sites, options.capture);
  }
}

std::vector<StageRun> StageChain::forward(const MicrobatchInput& input, const Around& around) {
  std::vector<StageRun> runs;
  std::vector<ValueMap> received(stages_.size());
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    run_within(around, static_cast<int>(s),
               [&] { runs.push_back(stages_[s].forward(input, std::move(received[s]))); });
    for (const layout::Crossing& crossing : stages_[s].sends()) {
      const at::Tensor value = stages_[s].value(runs[s], crossing.value);
      for (std::size_t i = 1; i < crossing.stages.size(); ++i) {
        received[crossing.stages[i]][crossing.value] = copy_across(value);
      }
    }
  }
  return runs;
}

void StageChain::backward(std::vector<StageRun> runs, std::int64_t num_samples,
                          const std::vector<double>& totals, const Around& around) {
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    if (!stages_[s].offloads() || scratch_.empty()) continue;
    StageProgram::offload(runs[s], scratch_);
    StageProgram::fetch(runs[s]);
  }
  std::vector<ValueMap> seeds;
  for (const StageProgram& stage : stages_) {
    seeds.push_back(loss_seeds(graph_, stage, num_samples, totals));
  }
  for (std::size_t s = stages_.size(); s-- > 0;) {
    ValueMap gradients;
    run_within(around, static_cast<int>(s),
               [&] { gradients = stages_[s].backward(std::move(runs[s]), seeds[s]); });
    for (const layout::Crossing& crossing : stages_[s].receives()) {
      const auto gradient = gradients.find(crossing.value);
      if (gradient == gradients.end()) continue;
      const int to = layout::previous_in_chain(crossing, static_cast<int>(s));
      seeds[to][crossing.value] = copy_across(gradient->second);
    }
  }
}

}  // namespace trireme::program
