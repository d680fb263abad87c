#pragma once

#include <span>
#include <vector>

#include "trireme/plan/analytic/achieved.h"
#include "trireme/plan/published/run_case.h"

namespace trireme::published {

/// Fits the achieved parts on measured runs: those of programs on all of them, those of devices on all and, as far as
/// a device's runs say otherwise, on its own. Devices without a run get what all have.
///
/// The sum over runs of (ln(predicted / measured) / 0.05)^2, beyond 8 % growing linearly, and of (ln(part / usual) /
/// spread)^2 becomes least; runs of a source on a device weigh 1 / sqrt(their number), and less where it says how noisy they are. Damped
/// Gauss-Newton steps.
///
/// cases    of which those of transformers count, whose programs are alike; at least one, else kInvalidArgument.
/// Order    the same cases give the same bits.
/// Cost     some hundred predictions of each case: seconds for hundreds of them.
analytic::AchievedByDevice calibrate(std::span<const RunCase> cases);

/// Predicted steps, seconds.
std::vector<double> predict_steps(std::span<const RunCase> cases,
                                  const analytic::AchievedByDevice& achieved);

}  // namespace trireme::published
