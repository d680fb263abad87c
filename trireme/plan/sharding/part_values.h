#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/sharding/find_sharding.h"
#include "trireme/plan/sharding/split.h"

namespace trireme::sharding {

/// The graph of a process as it is written (sharded_graph.h), and which of its values stand for values of the whole graph.
///
/// Values that are whole keep their ids; of a value that is split the first shard here has the id.
class PartValues {
 public:
  using Ids = std::vector<graph::ValueId>;  ///< One for each shard here.

  /// All must outlive it. The new graph has no nodes and no parameters yet.
  PartValues(const graph::Graph& whole, const Sharding& sharding, ShardRange range);

  graph::Graph& graph() { return graph_; }
  const graph::Graph& whole() const { return whole_; }
  graph::Value& value(graph::ValueId id) { return graph_.values[id]; }
  int num_shards() const { return sharding_.num_shards; }
  int shard(int local) const { return range_.first + local; }

  /// The parts of a split value, tiles where the sharding is of tiles. Their producers are set by whoever makes them.
  const Ids& parts_of(graph::ValueId id);

  /// A whole value as each shard here takes it; the gradients of the shards come back added up.
  const Ids& given(graph::ValueId id, const graph::Node& taker);

  /// Parts of a whole value that needs no gradient.
  const Ids& sliced(graph::ValueId id, TensorSplit split, const graph::Node& taker);

  /// What a node writes is another value afterwards.
  void forget_written(const graph::Node& node);

  graph::NodeId fresh_node() { return next_node_++; }
  int fresh_storage() { return next_storage_++; }
  graph::ValueId add_value(graph::Value value);

  /// A new node beside `like`, of another operator, that makes one value of the shape and dtype of `of`.
  graph::ValueId add_made(const graph::Node& like, const std::string& op,
                          graph::ArgumentList inputs, const graph::Value& of);

  /// Elements [begin, begin + part's extent) of `dim`.
  graph::ValueId add_slice(const graph::Node& like, graph::ValueId from, int dim,
                           std::int64_t begin, const graph::Value& part);

  /// The node on what each input's shard takes; its outputs are those of the whole. The first shard here has its id.
  ///
  /// taken   by value among the inputs; others are taken as they are.
  graph::Node clone_of(const graph::Node& node, const std::map<graph::ValueId, Ids>& taken,
                       int local);

  /// A call of one of the functions of sharded_graph.h, its outputs to be set.
  graph::Node& add_opaque(const graph::Node& like, std::string_view function, const Ids& inputs);

 private:
  int storage_of(int whole, int local);

  const graph::Graph& whole_;
  const Sharding& sharding_;
  ShardRange range_;
  graph::Graph graph_;
  std::map<graph::ValueId, Ids> parts_, given_;
  std::map<std::pair<graph::ValueId, TensorSplit>, Ids> sliced_;
  std::map<std::pair<int, int>, int> storages_;
  graph::NodeId next_node_ = 0;
  int next_storage_ = 0;
};

}  // namespace trireme::sharding
