#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/sharding/split.h"
#include "trireme/plan/sharding/windows.h"

namespace trireme::sharding {

/// How a node runs on tiles.
enum class TileKind : std::uint8_t {
  kLocal,   ///< Rows of the output come from the same rows of the inputs.
  kWindow,  ///< And from rows beside them.
  kNorm,    ///< A mean and a variance over the rows of all shards.
  kSum,     ///< Rows are summed away, or averaged: the output is whole.
  kLoss,    ///< A cross entropy of the classes of pixels, summed or averaged over all of them.
};

/// Positions of a norm's arguments; -1: the operator has none. Input, weight and bias are the first three of all.
struct NormPositions {
  static constexpr int kWeight = 1, kBias = 2;
  int running_mean = -1;
  int training = -1;
  int eps = -1;
  int residual = -1;
  int relu = -1;
};

/// Torch's batch and instance norm, and the library's own; null for other operators.
const NormPositions* norm_positions(const graph::Node& node);

struct TileRule {
  TileKind kind = TileKind::kLocal;
  /// By input that has rows, their dimension. Others, as weights, are whole.
  std::map<graph::ValueId, int> inputs;
  int output_dim = -1;    ///< Of rows; -1: the outputs are whole.
  std::vector<int> over;  ///< Of a norm or sum: dimensions of its input.
  bool is_mean = false;   ///< Of a sum.
  Window window = {};
};

/// The rule by which a node would run on tiles, given which of its inputs are split by rows; nothing where it has none and runs
/// whole. A window (convolution, pool, upsampling) has one whatever its inputs are.
///
/// known   of its inputs, the dimension of rows of those that are split.
std::optional<TileRule> tile_rule(const graph::Graph& graph, const graph::Node& node,
                                  const Splits& known, int num_shards);

}  // namespace trireme::sharding
