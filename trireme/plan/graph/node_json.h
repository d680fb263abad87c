#pragma once

#include "trireme/base/document.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::graph::internal {

/// Entries of the lists `values` and `nodes` (docs/formats.md). Readers throw kCorruptData.
Json to_json(const Value& value);
Value value_from_json(const JsonField& field);

Json to_json(const Node& node);
Node node_from_json(const JsonField& field);

/// Largest id in a document.
inline constexpr int kMaxId = 1 << 30;

}  // namespace trireme::graph::internal
