#pragma once

#include "trireme/plan/graph/graph.h"

namespace trireme::record {

// Operators of ours that repeat, at every run, a question whose answer the program acted on when it
// was recorded, and fail (c10::Error) where the answer is another one. They have no output.

/// (Tensor a, Tensor b, bool answer): whether `at::equal(a, b)`.
inline constexpr const char* kExpectEqual = "trireme::expect_equal";

/// The node that made `value`; null where it is no output of a node.
const graph::Node* producer_of(const graph::Graph& graph, const graph::Value& value);

/// What `value` was computed from, for messages: "the buffer 'initialized'", "the input 'x' and
/// parameters"; `values` are those of the recording so far.
std::string origin_text(const graph::Graph& graph, const std::vector<graph::Value>& values,
                        graph::ValueId value);

/// Whether `value` is the first entry of the batch sizes of packed sequences: their number, whatever
/// their lengths.
bool counts_packed_sequences(const graph::Graph& graph, const std::vector<graph::Value>& values,
                             graph::ValueId value);

}  // namespace trireme::record
