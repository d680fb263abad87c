#include "trireme/plan/partition/cut_rules.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"

namespace trireme::partition {
namespace {

/// A node that has its stage.
struct PlacedNode {
  int position = 0;
  int stage = 0;
  std::string name;      ///< For people.
  bool is_given = true;  ///< By --stage-of, not as the first or last of all.
};

[[noreturn]] void refuse_rule(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "partition: " + problem);
}

/// In execution order.
std::vector<PlacedNode> placed_nodes(const graph::Graph& graph, const StageOf& stage_of) {
  std::vector<PlacedNode> placed;
  for (int p = 0; p < static_cast<int>(graph.nodes.size()); ++p) {
    const graph::Node& node = graph.nodes[p];
    if (node.copy_of >= 0) continue;
    for (const auto& [name, stage] : stage_of) {
      if (means_node(name, node.name)) {
        placed.push_back({p, stage, "node " + std::to_string(p) + " ('" + node.name + "')"});
      }
    }
  }
  return placed;
}

std::string told(const PlacedNode& node) {
  return node.name + " in stage " + std::to_string(node.stage);
}

/// The first part of each module's name, or the first two where there is one of these alone.
std::string modules_of(const graph::Graph& graph) {
  constexpr std::size_t kMost = 12;
  std::vector<std::string> modules;
  for (int num_parts = 1; num_parts <= 2 && modules.size() <= 1; ++num_parts) {
    modules.clear();
    for (const graph::Node& node : graph.nodes) {
      const std::string path = node.name.substr(0, node.name.find('/'));
      std::size_t end = path.find('.');
      for (int i = 1; i < num_parts && end != std::string::npos; ++i) end = path.find('.', end + 1);
      const std::string module = path.substr(0, end);
      if (std::ranges::count(modules, module) == 0) modules.push_back(module);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, modules.size()); ++i) {
    text += (i == 0 ? "" : ", ") + modules[i];
  }
  return text + (modules.size() > kMost ? ", ..." : "");
}

/// Two nodes in their order, and whether their stages can be.
void check_order(const std::vector<bool>& allowed, const PlacedNode& node, const PlacedNode& next) {
  const bool are_given = node.is_given && next.is_given;
  if (are_given && node.position == next.position && node.stage != next.stage) {
    refuse_rule("--stage-of has " + told(node) + " and in stage " + std::to_string(next.stage) +
                "; leave one of them out");
  }
  if (node.stage > next.stage) {
    refuse_rule("--stage-of has " + told(node) + ", but the later " + told(next) +
                "; stages take nodes in their order");
  }
  const auto num_cuts =
      std::count(allowed.begin() + node.position + 1, allowed.begin() + next.position + 1, true);
  if (num_cuts < next.stage - node.stage) {
    refuse_rule("--stage-of has " + told(node) + " and " + told(next) +
                ", but between them the graph allows " + std::to_string(num_cuts) +
                (num_cuts == 1 ? " cut" : " cuts"));
  }
}

}  // namespace

bool means_node(const std::string& name, const std::string& node) {
  for (std::size_t end = node.find_first_of("./"); end != std::string::npos;
       end = node.find_first_of("./", end + 1)) {
    const std::string module = node.substr(0, end);
    if (module == name || fnmatch(name.c_str(), module.c_str(), 0) == 0) return true;
  }
  return node == name || fnmatch(name.c_str(), node.c_str(), 0) == 0;
}

CutRules::CutRules(const graph::Graph& planned, Cuts required, const StageOf& stage_of,
                   int num_stages)
    : required_(std::move(required)) {
  if (stage_of.empty()) return;
  windows_.resize(static_cast<std::size_t>(num_stages) - 1);
  for (const PlacedNode& node : placed_nodes(planned, stage_of)) {
    for (int s = 1; s < num_stages; ++s) {
      CutWindow& window = windows_[s - 1];
      if (s <= node.stage) {
        window.latest = std::min(window.latest, node.position);
      } else {
        window.earliest = std::max(window.earliest, node.position + 1);
      }
    }
    if (node.stage >= num_stages) is_possible_ = false;
  }
}

bool CutRules::keep(const Cuts& cuts) const {
  if (!is_possible_) return false;
  for (std::size_t c = 0; c < windows_.size(); ++c) {
    if (!windows_[c].contains(cuts[c])) return false;
  }
  return std::includes(cuts.begin(), cuts.end(), required_.begin(), required_.end());
}

void check_stage_of(const graph::Graph& recorded, const StageOf& stage_of, int num_stages) {
  for (const auto& [name, stage] : stage_of) {
    const bool is_known = std::ranges::any_of(
        recorded.nodes, [&](const graph::Node& node) { return means_node(name, node.name); });
    if (!is_known) {
      refuse_rule("--stage-of '" + name + "' means no node and no module; there are the modules " +
                  modules_of(recorded) + ", and `show` of the graph lists all nodes");
    }
    if (stage < 0 || stage >= num_stages) {
      refuse_rule("--stage-of '" + name + "' says stage " + std::to_string(stage) + ", but there " +
                  (num_stages == 1 ? "is stage 0 alone"
                                   : "are stages 0 to " + std::to_string(num_stages - 1)) +
                  "; ask for more --stages, or ranks");
    }
  }
  if (stage_of.empty()) return;
  std::vector<PlacedNode> placed = placed_nodes(recorded, stage_of);
  const auto last = static_cast<int>(recorded.nodes.size()) - 1;
  placed.insert(placed.begin(), {0, 0, "the first node", false});
  placed.push_back({last, num_stages - 1, "the last node", false});
  const std::vector<bool> allowed = graph::allowed_cuts(recorded);
  for (std::size_t i = 1; i < placed.size(); ++i) check_order(allowed, placed[i - 1], placed[i]);
}

}  // namespace trireme::partition
