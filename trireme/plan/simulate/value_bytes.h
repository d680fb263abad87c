#pragma once

#include <cstdint>

#include "trireme/plan/graph/graph.h"

namespace trireme::simulate {

/// Memory from the first to the last element that `value` reaches where the batch has `batch`
/// samples: what it takes alone, and what a message with it carries. An expanded tensor spans less
/// than its elements, a slice more.
///
/// Errors   those of graph::bytes_at.
std::int64_t span_bytes(const graph::Value& value, std::int64_t batch);

}  // namespace trireme::simulate
