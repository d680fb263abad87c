#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trireme/engine/parameters/optimizers/optimizer.h"
#include "trireme/plan.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::train {

/// How a parameter is updated at a rate: by the last group whose pattern its name fits.
parameters::UpdateRule rule_of(const OptimizerOptions& options, const std::string& parameter,
                               double learning_rate);

/// From a text like `*.bias,weight-decay=0,rate-scale=0.1`. kInvalidArgument for any other.
ParameterGroup parse_parameter_group(std::string_view text);

std::string to_text(const ParameterGroup& group);

/// Errors   kInvalidArgument for a number that cannot be, and for a pattern that fits no parameter.
void check_groups(const std::vector<ParameterGroup>& groups, const graph::Graph& graph);

}  // namespace trireme::train
