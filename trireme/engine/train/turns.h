#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/engine/parameters/optimizers/optimizer.h"
#include "trireme/plan.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::train {

/// The turn that a step is of; null where all losses count and all parameters move in each.
const Turn* turn_of(const OptimizerOptions& options, std::int64_t step);

/// Whether a loss has gradients in a step. Empty where all have, always.
std::function<bool(std::int64_t step, const std::string& loss)> counting_losses(
    const OptimizerOptions& options);

/// Of the parameters with a gradient those that the step's turn moves.
parameters::HasGradient moved_in(const OptimizerOptions& options, std::int64_t step,
                                 parameters::HasGradient has_gradient);

/// From a text like `discriminator.*,loss=real,loss=fake,steps=2`; several patterns stand with `|` between. kInvalidArgument
/// for any other.
Turn parse_turn(std::string_view text);

std::string to_text(const Turn& turn);

/// Errors   kInvalidArgument where a turn has no steps, no loss with a gradient, or a name that nothing has.
void check_turns(const std::vector<Turn>& turns, const graph::Graph& graph);

}  // namespace trireme::train
