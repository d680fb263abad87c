#pragma once

#include "trireme/base/document.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

/// A size: a plain number where it is fixed, else `{"per_sample": 1, "fixed": 0}`.
Json to_json(const Size& size);
Size size_from_json(const JsonField& field);

/// One argument:
///
///     nothing          null                     string         "sum"
///     tensor           {"value": 12}            dtype          {"dtype": "f32"}
///     bool             true                     device         {"device": "cpu"}
///     integer          5, or a size             layout         {"layout": "strided"}
///     real             0.5, or {"real": x}      memory format  {"memory_format": "preserve"}
///     complex          {"complex": [0.0, 1.0]}  list           [1, null, {"value": 3}]
///     wrapped number   {"wrapped": 4, "dtype": "i64"}
///
/// A real always has a point or an exponent, which tells it from an integer. `{"real": x}` holds
/// `inf`, `-inf`, `nan` (as texts) or `{"per_sample": 0.5, "fixed": 0.0}`.
Json to_json(const Argument& argument);

/// Errors   kCorruptData, naming the field.
Argument argument_from_json(const JsonField& field);

}  // namespace trireme::graph

namespace trireme::graph::internal {

/// Entries of the lists `values` and `nodes` (docs/formats.md). Readers throw kCorruptData.
Json to_json(const Value& value);
Value value_from_json(const JsonField& field);

Json to_json(const Node& node);
Node node_from_json(const JsonField& field);

/// Largest id in a document.
inline constexpr int kMaxId = 1 << 30;

}  // namespace trireme::graph::internal
