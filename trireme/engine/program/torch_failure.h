#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "trireme/error.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::program {

/// A failure as an Error: an Error itself, what torch threw in one line, anything else by its text.
/// Of kind kResourceExhausted where memory ran out, kUnavailable where this build of torch lacks a
/// device, kModelFailure else.
Error error_of(const std::exception& failure);

/// As above, for a node that failed in a run of `batch` samples: what was done, the node, what it
/// takes with shapes, and why. An Error stays what it is.
///
/// doing   `replaying`, `the backward of`.
Error node_failure(const std::string& doing, const graph::Graph& graph, const graph::Node& node,
                   std::int64_t batch, const std::exception& failure);

}  // namespace trireme::program
