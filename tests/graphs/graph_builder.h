#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::graph::testing {

/// What makes a node different from a plain one.
struct NodeOptions {
  std::string name = {};  ///< Default: the operator's name.
  std::string overload = {};
  ArgumentList constants = {};  ///< After the tensors.
  std::vector<ValueId> writes = {};
  ValueId view_of = -1;  ///< The output shares this value's memory.
  NodeFlags flags = {};
};

/// Writes graphs by hand. Values require a gradient as autograd would have it; strides are natural.
///
///     GraphBuilder b;
///     const ValueId x = b.input("x", {8});
///     const ValueId w = b.parameter("w", {8, 8});
///     const Graph graph = b.finish(b.loss(b.node("mm", {x, w}, b.batch({8}))));
class GraphBuilder {
 public:
  /// [B, ...shape], batch dimension 0.
  ValueId input(const std::string& name, const std::vector<std::int64_t>& shape);
  ValueId step_scalar(const std::string& name);
  ValueId parameter(const std::string& name, const std::vector<std::int64_t>& shape);
  ValueId frozen(const std::string& name, const std::vector<std::int64_t>& shape);
  ValueId buffer(const std::string& name, const std::vector<std::int64_t>& shape,
                 BufferPolicy policy = BufferPolicy::kReadOnly);
  /// An f32 tensor; its bytes are the numbers of `data`.
  ValueId constant(const std::vector<float>& data);

  /// A node `aten::<op>` with one output, or an opaque one if `op` is `opaque`.
  ValueId node(const std::string& op, const std::vector<ValueId>& inputs,
               const std::vector<Size>& shape, const NodeOptions& options = {});

  /// A node that writes its first input and hands it on.
  ValueId write(const std::string& op, const std::vector<ValueId>& inputs,
                const NodeOptions& options = {});

  /// A 0-dim mean of `x`.
  ValueId loss(ValueId x, const std::string& name = "loss");

  /// Shape [B, ...dims].
  static std::vector<Size> batch(const std::vector<std::int64_t>& dims);
  static std::vector<Size> fixed(const std::vector<std::int64_t>& dims);

  /// The id of the node that was made last.
  NodeId last_node() const { return graph_.nodes.back().id; }

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }

 private:
  ValueId add_value(ValueSource source, const std::vector<Size>& shape, bool requires_grad);

  Graph graph_;
  int next_storage_ = 0;
};

}  // namespace trireme::graph::testing
