#include "trireme/plan/sharding/part_values.h"

#include <algorithm>

#include "trireme/plan/sharding/sharded_graph.h"
#include "trireme/plan/sharding/tiles.h"

namespace trireme::sharding {

using graph::ArgumentList;
using graph::Node;
using graph::Size;
using graph::Value;
using graph::ValueId;
using graph::ValueRef;

PartValues::PartValues(const graph::Graph& whole, const Sharding& sharding, ShardRange range)
    : whole_(whole), sharding_(sharding), range_(range), graph_(whole) {
  graph_.nodes.clear();
  graph_.parameters.clear();
  graph_.shorter.clear();
  for (const Node& node : whole.nodes) next_node_ = std::max(next_node_, node.id + 1);
  for (const Value& value : whole.values) {
    next_storage_ = std::max(next_storage_, value.storage_id + 1);
  }
}

ValueId PartValues::add_value(Value value) {
  graph_.values.push_back(std::move(value));
  return static_cast<ValueId>(graph_.values.size()) - 1;
}

/// Memory of a shard's part, by that of the whole.
int PartValues::storage_of(int whole, int local) {
  if (local == 0) return whole;
  const auto [place, is_new] = storages_.emplace(std::pair(whole, local), next_storage_);
  if (is_new) ++next_storage_;
  return place->second;
}

const PartValues::Ids& PartValues::parts_of(ValueId id) {
  const auto [place, is_new] = parts_.emplace(id, Ids());
  if (!is_new) return place->second;
  const TensorSplit split = sharding_.splits.at(id);
  for (int local = 0; local < range_.count; ++local) {
    Value part = whole_.values[id];
    if (sharding_.kind == SplitKind::kTiles) {
      const std::int64_t extent = part.shape[split.dim].fixed;
      set_rows(part, split.dim, tile_rows(extent, num_shards(), shard(local)).size());
    } else {
      make_local(part, split, num_shards());
    }
    part.storage_id = storage_of(whole_.values[id].storage_id, local);
    if (local == 0) {
      value(id) = part;
      place->second.push_back(id);
    } else {
      place->second.push_back(add_value(part));
    }
  }
  return place->second;
}

ValueId PartValues::add_made(const Node& like, const std::string& op, ArgumentList inputs,
                             const Value& of) {
  Node node{.id = fresh_node(),
            .name = like.name + "/" + op.substr(op.find("::") + 2),
            .op = op,
            .overload = {},
            .inputs = std::move(inputs),
            .outputs = {},
            .output_lists = {-1},
            .writes = {},
            .flags = {.grad_mode = like.flags.grad_mode},
            .autocast = like.autocast};
  Value made = of;
  made.source = graph::ValueSource::kNode;
  made.producer = node.id;
  made.storage_id = fresh_storage();
  node.outputs.push_back(add_value(std::move(made)));
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().outputs.front();
}

ValueId PartValues::add_slice(const Node& like, ValueId from, int dim, std::int64_t begin,
                              const Value& part) {
  const auto integer = [](std::int64_t number) { return graph::Argument{Size{0, number}}; };
  const std::int64_t end = begin + part.shape[dim].fixed;
  const ValueId made =
      add_made(like, "aten::slice",
               {{ValueRef{from}}, integer(dim), integer(begin), integer(end), integer(1)}, part);
  graph_.nodes.back().overload = "Tensor";
  graph_.nodes.back().flags.view = true;
  value(made).storage_id = value(from).storage_id;
  return made;
}

namespace {

template <typename Renamed>
void rename(graph::Argument& argument, const Renamed& renamed) {
  if (auto* ref = std::get_if<ValueRef>(&argument.content)) ref->value = renamed(ref->value);
  auto* list = std::get_if<ArgumentList>(&argument.content);
  if (list == nullptr) return;
  for (graph::Argument& item : *list) rename(item, renamed);
}

}  // namespace

Node PartValues::clone_of(const Node& node, const std::map<ValueId, Ids>& taken, int local) {
  Node clone = node;
  if (local > 0) clone.id = fresh_node();
  clone.copy_of = -1;
  const auto renamed = [&](ValueId id) {
    const auto found = taken.find(id);
    return found == taken.end() ? id : found->second[local];
  };
  for (graph::Argument& argument : clone.inputs) rename(argument, renamed);
  for (ValueId& id : clone.writes) id = renamed(id);
  return clone;
}

Node& PartValues::add_opaque(const Node& like, std::string_view function, const Ids& inputs) {
  ArgumentList list;
  for (const ValueId id : inputs) list.push_back({ValueRef{id}});
  graph_.nodes.push_back({.id = fresh_node(),
                          .name = like.name + "/" + std::string(function),
                          .op = "opaque",
                          .overload = std::string(function),
                          .inputs = {{std::move(list)}, {ArgumentList{}}, {ArgumentList{}}},
                          .outputs = {},
                          .output_lists = {},
                          .writes = {},
                          .flags = {.grad_mode = like.flags.grad_mode},
                          .autocast = {}});
  return graph_.nodes.back();
}

const PartValues::Ids& PartValues::given(ValueId id, const Node& taker) {
  const auto [place, is_new] = given_.emplace(id, Ids());
  if (!is_new) return place->second;
  Node& node = add_opaque(taker, kGivenToShards, {id});
  node.flags.view = true;
  node.output_lists = {range_.count};
  for (int local = 0; local < range_.count; ++local) {
    Value part = value(id);
    part.source = graph::ValueSource::kNode;
    part.producer = node.id;
    place->second.push_back(add_value(std::move(part)));
  }
  node.outputs = place->second;
  return place->second;
}

const PartValues::Ids& PartValues::sliced(ValueId id, TensorSplit split, const Node& taker) {
  const auto [place, is_new] = sliced_.emplace(std::pair(id, split), Ids());
  if (!is_new) return place->second;
  Value part = whole_.values[id];
  const std::int64_t extent = part.shape[split.dim].fixed / num_shards();
  part.shape[split.dim].fixed = extent;
  for (int local = 0; local < range_.count; ++local) {
    place->second.push_back(add_slice(taker, id, split.dim, extent * shard(local), part));
  }
  return place->second;
}

void PartValues::forget_written(const Node& node) {
  for (const ValueId written : node.writes) {
    const int storage = whole_.values[written].storage_id;
    std::erase_if(given_,
                  [&](const auto& item) { return value(item.first).storage_id == storage; });
    std::erase_if(sliced_, [&](const auto& item) {
      return whole_.values[item.first.first].storage_id == storage;
    });
  }
}

}  // namespace trireme::sharding
