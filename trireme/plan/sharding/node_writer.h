#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/sharding/part_values.h"
#include "trireme/plan/sharding/tiles.h"

namespace trireme::sharding {

/// Writes nodes in the place of one of the whole graph: with its autocast off, and its gradient mode.
class NodeWriter {
 public:
  /// Both must outlive it.
  NodeWriter(PartValues& values, const graph::Node& like);

  /// Of the next nodes.
  void set_grad_mode(bool grad_mode) { grad_mode_ = grad_mode; }

  /// op       `aten::sum.dim_IntList`: operator and overload.
  /// shape    of the one output, which is dense and in the order of its dimensions, needs a gradient where an input does, and
  ///          is ragged where one is.
  graph::ValueId add(const std::string& op, graph::ArgumentList inputs,
                     std::vector<graph::Size> shape, Dtype dtype);

  /// The same for an output that looks like `like`.
  graph::ValueId add_like(const std::string& op, graph::ArgumentList inputs, graph::ValueId like);

  /// The value in f32; itself where it is.
  graph::ValueId in_f32(graph::ValueId id);

  /// And for one that is there: it becomes the node's output.
  void add_onto(graph::ValueId output, const std::string& op, graph::ArgumentList inputs);

  /// The sum over all shards (sharded_graph.h), or another function of the partial results here that makes one value of their
  /// shape.
  graph::ValueId add_over_shards(std::string_view function, const PartValues::Ids& partial);

  /// `whole` for each shard here, by an opaque function; gradients come back added up (PartValues::given).
  const PartValues::Ids& give(graph::ValueId whole) { return values_.given(whole, like_); }

  /// Rows of a value, a view; the value itself where they are all.
  graph::ValueId add_rows(graph::ValueId from, int dim, RowRange wanted);

  /// `fill` before and behind the rows of a value; the value itself where there are no such rows.
  graph::ValueId add_padding(graph::ValueId from, int dim,
                             std::pair<std::int64_t, std::int64_t> rows, double fill);

  const graph::Value& value(graph::ValueId id) const { return values_.value(id); }

 private:
  PartValues& values_;
  const graph::Node& like_;
  bool grad_mode_;
};

/// Arguments of nodes.
inline graph::Argument tensor(graph::ValueId id) { return {graph::ValueRef{id}}; }
inline graph::Argument integer(std::int64_t number) { return {graph::Size{0, number}}; }
graph::Argument integers(const std::vector<std::int64_t>& numbers);

}  // namespace trireme::sharding
