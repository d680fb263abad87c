#pragma once

#include <map>
#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/partition/chain.h"

namespace trireme::partition {

/// Nodes by name, module or pattern, and their stages (PlanOptions::stage_of).
using StageOf = std::map<std::string, int>;

/// Which cuts may be made where some are given and some nodes have their stages.
class CutRules {
 public:
  using Cuts = std::vector<int>;

  /// required   positions in `planned`, ascending.
  /// stage_of   passes `check_stage_of`; copies of a node (graph::copy_to_consumers) may run anywhere.
  CutRules(const graph::Graph& planned, Cuts required, const StageOf& stage_of, int num_stages);

  /// cuts   as many as the stages take, ascending.
  bool keep(const Cuts& cuts) const;

  /// Whether every node's stage exists.
  bool is_possible() const { return is_possible_; }

  const Cuts& required() const { return required_; }

  /// By stage but the first; empty: stages may begin anywhere.
  const std::vector<CutWindow>& windows() const { return windows_; }

 private:
  Cuts required_;
  std::vector<CutWindow> windows_;
  bool is_possible_ = true;
};

/// Whether `name` means the node: its name, or that of a module it belongs to, or a pattern of either.
bool means_node(const std::string& name, const std::string& node);

/// Refuses what no cuts into so many stages keep.
///
/// Errors   kInvalidArgument: a name that means no node, with the modules there are; a stage that does not exist; one node
///          in two stages; an earlier node in a later stage than a later one; too few places for cuts between two.
void check_stage_of(const graph::Graph& recorded, const StageOf& stage_of, int num_stages);

}  // namespace trireme::partition
