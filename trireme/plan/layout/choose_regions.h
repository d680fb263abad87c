#pragma once

#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {

/// Where regions of a stage may begin, but for the first: each has about as many bytes of new tensors, and begins where
/// few bytes cross.
///
/// planned       the graph whose positions the plan counts.
/// num_regions   at least 1.
/// Returns       ascending positions; fewer where the stage has too few allowed cuts.
/// Cost          linear in nodes and arguments of the graph, and regions x nodes of the stage.
std::vector<int> even_regions(const graph::Graph& planned, const Plan& plan, int stage,
                              int num_regions);

/// Gives a stage those regions, of all numbers up to 64, with which the fewest bytes are held at once: one region of one
/// microbatch, all its tensors, and what regions before it keep for later ones. For plans without a profile.
void set_regions(const graph::Graph& planned, Plan& plan, int stage);

}  // namespace trireme::layout
