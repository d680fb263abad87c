#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "trireme/engine/train/session.h"
#include "trireme/engine/train/workload.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {

/// How one execution of some steps compares with another.
struct Comparison {
  std::string against;  ///< `uncut` or `plain loop`.
  bool must_be_bitwise = true;
  bool is_bitwise = true;
  std::string first_difference;  ///< The first thing that is not the same bits; empty if none.
  double worst_loss = 0;         ///< Largest relative difference of a step's loss.
  double worst_gradient = 0;     ///< Of the first step, |difference| / |norm| of a tensor.
  double worst_weight = 0;       ///< After the last step, likewise.
  double weight_limit = std::numeric_limits<double>::infinity();
  bool passes() const;
};

struct VerifyOptions {
  std::int64_t num_steps = 3;
  std::uint64_t seed = 0;
  OptimizerOptions optimizer;
};

/// Trains the workload three times from the same weights over the same samples: by the serial
/// executor under `plan`, by the serial executor uncut, and by a plain torch loop around the
/// unmodified model, and compares losses, all gradients, weights and buffers.
///
/// Against `uncut`, everything is the same bits. Against the plain loop too, where there is one
/// lane, no parameter has several use sites, nothing is copied and no node is opaque; else first
/// gradients agree to 1e-6 of their norm, losses to 1e-5, weights to 1e-5 of their norm under sgd
/// (adamw magnifies what rounds differently near zero, so its weights are reported only).
std::vector<Comparison> verify(const MakeWorkload& make_workload, const layout::Plan& plan,
                               const VerifyOptions& options);

}  // namespace trireme::train
