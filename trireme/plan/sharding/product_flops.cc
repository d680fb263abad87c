#include "trireme/plan/sharding/product_flops.h"

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/sharding/dimension_map.h"
#include "trireme/plan/sharding/windows.h"

namespace trireme::sharding {
namespace {

double elements(const graph::Graph& graph, graph::ValueId value, std::int64_t microbatch) {
  return static_cast<double>(graph::num_elements_at(graph.values[value], microbatch));
}

/// Each element of the output takes kernel elements / output channels products; of a transposed one each element of the input.
double convolution_flops(const graph::Graph& graph, const graph::Node& node, const Window& window,
                         std::int64_t microbatch) {
  const auto weight = value_at(node, 1);
  if (!weight) return 0;  // a pool, an upsampling
  double pairs = 1;
  const std::vector<graph::Size>& kernel = graph.values[*weight].shape;
  for (std::size_t dim = 1; dim < kernel.size(); ++dim) {
    pairs *= static_cast<double>(kernel[dim].at(microbatch));
  }
  return 2 * pairs *
         elements(graph, window.is_transposed ? *value_at(node, 0) : node.outputs.front(),
                  microbatch);
}

}  // namespace

double product_flops(const graph::Graph& graph, const graph::Node& node, std::int64_t microbatch) {
  if (const auto window = window_of(graph, node)) {
    return convolution_flops(graph, node, *window, microbatch);
  }
  const auto map = is_reshape(node) ? std::nullopt : dimension_map(graph, node);
  if (!map || !map->contraction || map->contraction->right < 0) return 0;
  const auto& [left, dim, right, right_dim] = *map->contraction;
  return 2 * elements(graph, node.outputs.front(), microbatch) *
         static_cast<double>(graph.values[left].shape[dim].at(microbatch));
}

}  // namespace trireme::sharding
