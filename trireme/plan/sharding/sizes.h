#pragma once

#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::sharding {

/// Their product; of two that grow with the batch there is none.
graph::Size times(const graph::Size& a, const graph::Size& b);

/// Strides of a dense tensor in the order of its dimensions, of which at most one grows with the batch.
std::vector<graph::Size> natural_strides(const std::vector<graph::Size>& shape);

}  // namespace trireme::sharding
