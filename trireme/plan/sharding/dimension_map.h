#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::sharding {

/// Where each dimension of a node's outputs comes from, for operators that treat the elements along a dimension alike.
///
/// All outputs have one shape.
struct DimensionMap {
  struct Input {
    graph::ValueId value = -1;
    std::vector<int>
        of_output;  ///< By dimension of the output, that of the input; -1: none, the input is the same for all.
  };

  /// Dimensions of two inputs that are summed over: of shards with parts of them the outputs are added up. A vocabulary is a
  /// dimension of one input alone (vocabulary_nodes.h).
  struct Contraction {
    graph::ValueId left = -1;
    int left_dim = 0;
    graph::ValueId right = -1;  ///< -1: there is none.
    int right_dim = 0;
  };

  std::vector<Input> inputs;
  std::vector<int> whole =
      {};  ///< Dimensions of the output along which elements meet (a softmax's): never split.
  std::optional<Contraction> contraction = {};
  graph::ValueId bias = -1;  ///< What is added after the contraction.

  /// The output's dimension along which the input lies in several outputs, one behind the other; -1: none.
  int chunked_dim = -1;
  std::int64_t num_chunks = 1;
};

/// Nothing for operators that are not known, and where one does not treat elements alike (dropout inside of an attention, a
/// dropout of what does not lie densely in the order of its dimensions).
std::optional<DimensionMap> dimension_map(const graph::Graph& graph, const graph::Node& node);

/// Whether a node only gives its first input another shape.
bool is_reshape(const graph::Node& node);

/// Whether a node is a dropout. The mask of one that draws is drawn once, for all shards.
bool is_dropout(const graph::Node& node);

/// The operator without the mark of one that writes its input: `aten::add` of `aten::add_`.
std::string_view plain_operator(const graph::Node& node);

// Arguments of nodes, by their position in the schema; nothing where they are no such thing.
std::optional<graph::ValueId> value_at(const graph::Node& node, std::size_t index);
std::optional<bool> bool_at(const graph::Node& node, std::size_t index);
std::optional<std::int64_t> integer_at(const graph::Node& node, std::size_t index);
std::optional<double> number_at(const graph::Node& node, std::size_t index);
std::optional<std::vector<std::int64_t>> integers_at(const graph::Node& node, std::size_t index);

/// A dimension of a tensor of `rank`; negative ones count from the end.
std::optional<int> dimension_at(const graph::Node& node, std::size_t index, int rank);

}  // namespace trireme::sharding
