#pragma once

#include <gtest/gtest.h>

#include "tests/engine/reference/trial.h"
#include "trireme/engine/reference/plain_loop.h"
#include "trireme/plan/graph/cuts.h"

namespace trireme::reference {

/// Expects one step of the plain model to be, bit for bit, the step of its replay whole and cut in
/// two at every allowed cut, into stages and into regions that recompute: loss, gradients and buffers. Returns the step.
/// Needs one lane.
inline StepRecord expect_plain_at_every_cut(Trial& trial) {
  const StepRecord whole = trial.run_cut({});
  const std::vector<bool> allowed = graph::allowed_cuts(trial.recording.graph);
  for (std::size_t cut = 0; cut < allowed.size(); ++cut) {
    if (!allowed[cut]) continue;
    const std::vector<int> at = {static_cast<int>(cut)};
    EXPECT_EQ(difference(whole, trial.run_cut(at)), "") << "cut " << cut;
    const auto divided = trial.run_regions({}, at);
    if (divided) {
      EXPECT_EQ(difference(whole, *divided), "") << "region from " << cut;
    }
  }
  trial.restore_buffers();
  const auto losses = PlainLoop(trial.test.model, Trial::kSeed).run_step(0, trial.microbatches(0));
  EXPECT_EQ(losses.total(), whole.loss);
  for (const auto& [name, tensor] : trial.test.model.parameters) {
    if (!tensor.grad().defined()) continue;
    const auto found = whole.gradients.find(name);
    EXPECT_TRUE(found != whole.gradients.end() &&
                same_bits(found->second, tensor.grad().to_dense()))
        << name;
  }
  for (const NamedTensor& buffer : trial.test.model.buffers) {
    EXPECT_TRUE(same_bits(whole.buffers.at(buffer.name), buffer.tensor)) << buffer.name;
  }
  return whole;
}

}  // namespace trireme::reference
