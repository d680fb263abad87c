#include "trireme/wire/collectives/schedule/expression.h"

#include "trireme/kernels/reduce/tree.h"

namespace trireme::collectives {

Expressions::Id Expressions::id_of(const Node& node) {
  const auto [found, is_new] = ids_.try_emplace(node, static_cast<Id>(nodes_.size()));
  if (is_new) nodes_.push_back(node);
  return found->second;
}

Expressions::Id Expressions::leaf(int rank, Place place, std::int64_t index) {
  return id_of({.rank = rank, .place = place, .index = index});
}

Expressions::Id Expressions::merged(const std::vector<Id>& sources) {
  std::vector<Id> items = sources;
  for (const kernels::Merge merge : kernels::tree_merges(static_cast<int>(items.size()))) {
    items[merge.left] = id_of({.left = items[merge.left], .right = items[merge.right]});
  }
  return items.at(0);
}

Expressions::Id Expressions::reduced(const std::vector<Id>& sources) {
  return id_of({.left = merged(sources)});
}

template <typename Visit>
void Expressions::for_leaves(Id id, Visit visit) const {
  const Node& node = nodes_[id];
  if (node.rank >= 0) return visit(node);
  for_leaves(node.left, visit);
  if (node.right >= 0) for_leaves(node.right, visit);
}

std::vector<int> Expressions::count_ranks(Id id, int num_ranks) const {
  std::vector<int> counts(num_ranks);
  for_leaves(id, [&](const Node& leaf) { ++counts[leaf.rank]; });
  return counts;
}

bool Expressions::is_of_element(Id id, std::int64_t index) const {
  bool result = true;
  for_leaves(id, [&](const Node& leaf) {
    result = result && leaf.place == Place::kData && leaf.index == index;
  });
  return result;
}

std::string Expressions::text(Id id) const {
  if (id == kUnwritten) return "unwritten";
  const Node& node = nodes_[id];
  if (node.rank >= 0) {
    return (node.place == Place::kInput ? "input " : "") + std::to_string(node.rank) + ":" +
           std::to_string(node.index);
  }
  if (node.right < 0) return "round" + text(node.left);
  return "(" + text(node.left) + "+" + text(node.right) + ")";
}

}  // namespace trireme::collectives
