#pragma once

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/sharding/part_values.h"

namespace trireme::sharding {

// A vocabulary over shards: shard s has the s-th of S equal parts of its entries, rows of a table and classes of a loss.

/// Whether a node takes rows of a table, and shards may have some of them: gradients are dense and do not depend on how often an
/// entry occurs.
bool is_lookup(const graph::Node& node);

/// Whether a node is a cross entropy of integer classes that lie along dimension 1, without weights of classes and label smoothing.
bool is_cross_entropy(const graph::Graph& graph, const graph::Node& node);

/// What a shard here has of the rows that a lookup takes: those of other shards are zeros, so that the sum over shards is exact.
graph::ValueId add_lookup(PartValues& values, const graph::Node& node, graph::ValueId table,
                          int local);

/// A cross entropy of which each shard here has the logits of its classes, with losses as the whole makes them:
///
///     loss = log(sum over shards(sum exp(x - m))) - sum over shards(x - m at the class, 0 where another shard has it)
///     m    = maximum over shards(max x), taken as a constant
///
/// Computed in f32 where logits are f16 or bf16. A class that is neither there nor ignored is an error of torch where the step
/// runs, as in the whole model; entries of a lookup that the table does not have as well.
void add_cross_entropy(PartValues& values, const graph::Node& node, const PartValues::Ids& logits);

}  // namespace trireme::sharding
