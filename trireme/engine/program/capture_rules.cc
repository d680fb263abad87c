#include "trireme/engine/program/capture_rules.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <set>

#include "trireme/plan/graph/graph_queries.h"

namespace trireme::program {
namespace {

bool is_discrete(Dtype dtype) {
  switch (dtype) {
    case Dtype::kI64:
    case Dtype::kI32:
    case Dtype::kI16:
    case Dtype::kI8:
    case Dtype::kU8:
    case Dtype::kBool:
      return true;
    default:
      return false;
  }
}

/// Composed of others, and with integers in tensors: they only hand these on.
const std::set<std::string>& harmless() {
  static const std::set<std::string> names = {
      "aten::broadcast_tensors",
      "aten::chunk",
      "aten::concat",
      "aten::contiguous",
      "aten::cross_entropy_loss",
      "aten::einsum",
      "aten::expand_as",
      "aten::flatten",
      "aten::gather",
      "aten::matmul",
      "aten::movedim",
      "aten::narrow",
      "aten::nll_loss",
      "aten::nll_loss2d",
      "aten::nll_loss_nd",
      "aten::numpy_T",
      "aten::reshape",
      "aten::reshape_as",
      "aten::scaled_dot_product_attention",
      "aten::swapaxes",
      "aten::take_along_dim",
      "aten::to",
      "aten::type_as",
      "aten::unflatten",
      "aten::view_as",
      "aten::where",
  };
  return names;
}

bool is_composed(const graph::Node& node) {
  const auto op = c10::Dispatcher::singleton().findSchema({node.op, node.overload});
  return !op || op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

bool takes_integers(const graph::Graph& graph, const graph::Node& node) {
  return std::ranges::any_of(graph::input_values(node), [&](graph::ValueId value) {
    return is_discrete(graph.values[value].dtype);
  });
}

bool is_ragged(const graph::Graph& graph, const graph::Node& node) {
  const auto ragged = [&](graph::ValueId value) {
    return value >= 0 && graph.values[value].is_ragged;
  };
  return std::ranges::any_of(graph::input_values(node), ragged) ||
         std::ranges::any_of(node.outputs, ragged);
}

bool writes_buffer(const graph::Graph& graph, const graph::Node& node) {
  return std::ranges::any_of(graph.buffers, [&](const graph::Buffer& buffer) {
    return buffer.policy != graph::BufferPolicy::kCounter &&
           std::ranges::count(node.writes, buffer.value) > 0;
  });
}

}  // namespace

std::string why_not_captured(const graph::Graph& graph, const graph::Node& node) {
  if (node.op == "opaque") return "an opaque function may do anything";
  if (node.op == "aten::_pack_padded_sequence") return "its backward reads sizes by pointer";
  if (writes_buffer(graph, node)) return "writes a buffer of the model";
  if (is_ragged(graph, node)) return "has shapes that depend on data";
  const bool is_ours = node.op.starts_with("trireme::");
  if (!is_ours && !node.op.starts_with("aten::")) return "an operator of another library";
  if (is_ours && node.flags.random) return "draws random numbers above its kernel";
  if ((is_ours || is_composed(node)) && takes_integers(graph, node) &&
      !harmless().contains(node.op)) {
    return "may read integers above its kernels";
  }
  return "";
}

}  // namespace trireme::program
