#include "trireme/plan/simulate/gradient_rules.h"

#include <algorithm>
#include <array>

#include "trireme/plan/graph/graph_queries.h"

namespace trireme::simulate {

bool hands_on_gradient(const graph::Graph& graph, const graph::Node& node, graph::ValueId input) {
  const bool is_sum = node.op == "aten::add" || node.op == "aten::add_";
  if ((!node.flags.view && !is_sum) || node.outputs.size() != 1 || node.outputs[0] < 0) {
    return false;
  }
  const graph::Value& from = graph.values[input];
  const graph::Value& to = graph.values[node.outputs[0]];
  if (from.dtype != to.dtype) return false;
  if (is_sum) return from.shape == to.shape;
  // Views of a part of the elements, or of some twice, get a gradient of their own.
  constexpr std::int64_t kSomeBatch = 5;
  return graph::num_elements_at(from, kSomeBatch) == graph::num_elements_at(to, kSomeBatch);
}

bool computes_apart(std::string_view op) {
  constexpr std::array kApart = {"aten::addmm",  "aten::mm",    "aten::bmm",  "aten::baddbmm",
                                 "aten::addmv",  "aten::mv",    "aten::conv", "aten::_convolution",
                                 "aten::linear", "aten::matmul"};
  return std::ranges::any_of(kApart, [&](const char* known) { return op.starts_with(known); });
}

}  // namespace trireme::simulate
