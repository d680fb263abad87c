#pragma once

#include <cstdint>
#include <optional>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/sharding/tiles.h"

namespace trireme::sharding {

/// How rows of a node's output come from rows of its first input: of convolutions, pools and upsamplings, along their first
/// spatial dimension, which is dimension 2 of both.
///
///     row o of a convolution       from rows o * stride - padding + j * dilation, j < kernel
///     row i of a transposed one    goes to rows i * stride - padding + j * dilation
///     an upsampling                a transposed one with kernel = stride, each row from one alone
struct Window {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  bool is_transposed = false;
  double fill = 0;  ///< What stands beyond the edges.
  bool operator==(const Window&) const = default;
};

/// What a shard needs for some rows of the output.
struct WindowRows {
  RowRange input;             ///< May reach beyond the edges of one that is not transposed.
  std::int64_t num_made = 0;  ///< Rows that it gives without padding.
  std::int64_t skipped = 0;   ///< Of them, those before the first wanted one.
};

/// Dimension of rows.
inline constexpr int kRowDim = 2;

/// Nothing for other operators, samples without a batch dimension, and where windows do not treat all rows alike (averages
/// that count less at the edges, upsamplings by other than whole numbers).
std::optional<Window> window_of(const graph::Graph& graph, const graph::Node& node);

/// Rows of the input for rows of the output; nothing where some of them come from none, which only a transposed
/// window's padding of its output does.
std::optional<WindowRows> rows_for(const Window& window, RowRange output,
                                   std::int64_t input_extent);

/// Takes the padding of rows away and, where the node names the size of its output, makes that `num_made` rows.
void make_unpadded(graph::Node& node, std::int64_t num_made);

}  // namespace trireme::sharding
