#pragma once

#include <cstdint>

#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

/// Elements of `value` where the batch has `batch` samples.
///
/// Errors   kInvalidArgument where a dimension is negative at that batch or the product exceeds
///          64 bits.
std::int64_t num_elements_at(const Value& value, std::int64_t batch);

/// `num_elements_at` times the size of an element: its bytes when sent densely.
std::int64_t bytes_at(const Value& value, std::int64_t batch);

}  // namespace trireme::graph
