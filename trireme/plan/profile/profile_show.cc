#include "trireme/plan/profile/profile_show.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/graph/text_table.h"

namespace trireme::profile {
namespace {

using graph::bytes_text;
using graph::Table;

constexpr std::size_t kMaxRows = 20;
constexpr std::size_t kNameColumns = 48;

std::string fixed(double number, int digits) {
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

std::string percent(double part) { return fixed(100 * part, 1) + " %"; }

/// What the nodes of one cost add up to.
struct Group {
  int num_nodes = 0;
  int first = -1;  ///< Position.
  double forward_us = 0, input_us = 0, weight_us = 0;
  double total_us() const { return forward_us + input_us + weight_us; }
};

std::vector<Group> groups_of(const Profile& profile, const std::vector<NodeTime>& times) {
  std::vector<Group> groups(profile.costs.size());
  for (std::size_t p = 0; p < times.size(); ++p) {
    Group& group = groups[profile.cost_of[p]];
    if (group.num_nodes++ == 0) group.first = static_cast<int>(p);
    group.forward_us += times[p].forward_us;
    group.input_us += times[p].input_us;
    group.weight_us += times[p].weight_us;
  }
  return groups;
}

/// Memory of parameters, inputs and the like: nobody keeps it for a backward.
std::set<int> lasting_storages(const graph::Graph& graph) {
  std::set<int> storages;
  for (const graph::Value& value : graph.values) {
    if (value.source != graph::ValueSource::kNode) storages.insert(value.storage_id);
  }
  return storages;
}

/// Bytes that one node keeps for its backward, each memory once, what lasts anyway left out.
std::int64_t kept_bytes(const Profile& profile, const graph::Graph& graph, int position,
                        const std::set<int>& lasting) {
  const NodeCost& cost = profile.costs[profile.cost_of[position]];
  const graph::Node& node = graph.nodes[position];
  const std::vector<graph::ValueId> inputs = graph::input_values(node);
  std::vector<graph::ValueId> saved;
  for (const int index : cost.saved_inputs) saved.push_back(inputs[index]);
  for (const int index : cost.saved_outputs) saved.push_back(node.outputs[index]);
  std::set<int> counted = lasting;
  std::int64_t bytes = cost.kept_bytes;
  for (const graph::ValueId id : saved) {
    if (id < 0) continue;
    const graph::Value& value = graph.values[id];
    if (!counted.insert(value.storage_id).second) continue;
    bytes += graph::bytes_at(value, profile.microbatch);
  }
  return bytes;
}

std::string nodes_text(const Profile& profile, const graph::Graph& graph,
                       const std::vector<NodeTime>& times) {
  const std::vector<Group> groups = groups_of(profile, times);
  const std::set<int> lasting = lasting_storages(graph);
  std::vector<std::size_t> order;
  double total = 0;
  for (std::size_t c = 0; c < groups.size(); ++c) {
    if (groups[c].num_nodes > 0) order.push_back(c);
    total += groups[c].total_us();
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return groups[a].total_us() > groups[b].total_us();
  });
  const std::size_t num_distinct = order.size();
  order.resize(std::min(num_distinct, kMaxRows));
  Table table(
      {"node", ">times", ">F us", ">I us", ">W us", ">share", ">keeps", ">workspace", ">spread"});
  for (const std::size_t c : order) {
    const Group& group = groups[c];
    const NodeCost& cost = profile.costs[c];
    table.add({graph::shortened(cost.key, kNameColumns), std::to_string(group.num_nodes),
               fixed(group.forward_us, 1), fixed(group.input_us, 1), fixed(group.weight_us, 1),
               percent(total > 0 ? group.total_us() / total : 0),
               bytes_text(kept_bytes(profile, graph, group.first, lasting)),
               bytes_text(std::max(cost.forward_workspace_bytes, cost.backward_workspace_bytes)),
               percent(cost.spread)});
  }
  return "\nmost expensive nodes (times of all together; keeps, workspace: of each), " +
         std::to_string(num_distinct) + " distinct of " + std::to_string(times.size()) + "\n" +
         table.text();
}

std::string ranges_text(const Profile& profile) {
  if (profile.ranges.empty()) return "";
  Table table({"positions", ">F us", ">B us", ">nodes alone F us", ">B us"});
  for (const RangeTime& range : profile.ranges) {
    double forward = 0, backward = 0;
    for (int p = range.begin; p < range.end; ++p) {
      const NodeCost& cost = profile.costs[profile.cost_of[p]];
      forward += cost.forward_us;
      backward += cost.input_us + cost.weight_us;
    }
    table.add({std::to_string(range.begin) + ".." + std::to_string(range.end - 1),
               fixed(range.forward_us, 1), fixed(range.backward_us, 1), fixed(forward, 1),
               fixed(backward, 1)});
  }
  return "\nranges measured as a whole; node times are scaled to them\n" + table.text();
}

std::string held_text(const std::optional<HeldTimes>& held) {
  if (!held) return "";
  return "\nwhere " + graph::bytes_text(held->held_bytes) + " of activations are held, not " +
         graph::bytes_text(held->one_bytes) + ": F " + fixed(held->forward, 3) +
         " times as long, B " + fixed(held->backward, 3) + " times\n";
}

std::string uncaptured_text(const std::optional<UncapturedTimes>& uncaptured) {
  if (!uncaptured) return "";
  return "\nin stages that are not captured: F " + fixed(uncaptured->forward, 3) +
         " times as long, B " + fixed(uncaptured->backward, 3) + " times\n";
}

/// What a message of that size takes of computing cores, where that was measured.
std::string work_text(const StepCosts& step, std::int64_t bytes) {
  const auto found = std::ranges::find(step.messages, bytes, &MessageWork::bytes);
  return found == step.messages.end() ? "" : fixed(found->us, 1);
}

std::string links_text(const Profile& profile) {
  if (profile.links.empty()) return "";
  const bool has_work = !profile.step.messages.empty();
  std::vector<std::string> heads = {"link", ">message", ">alone us", ">beside compute us"};
  if (has_work) heads.push_back(">of computing cores us");
  Table table(heads);
  for (const LinkTable& links : profile.links) {
    for (const LinkTime& time : links.times) {
      std::vector<std::string> row = {std::string(to_text(links.kind)), bytes_text(time.bytes),
                                      fixed(time.alone_us, 1), fixed(time.beside_compute_us, 1)};
      if (has_work) row.push_back(work_text(profile.step, time.bytes));
      table.add(row);
    }
  }
  return "\nlinks\n" + table.text();
}

std::string hardware_text(const Profile& profile) {
  const Hardware& hardware = profile.hardware;
  return "  taken on " + hardware.processor + ", " + std::to_string(hardware.num_cores) +
         " cores, " + hardware.instruction_set + ", torch " + hardware.torch_version + ", " +
         std::to_string(profile.num_busy_ranks) + " ranks busy" +
         (profile.threads == 1 ? ""
                               : ", each with " + std::to_string(profile.threads) + " threads") +
         "\n  graph " + profile.graph_sha256 + "\n";
}

std::string file_text(const StepCosts& step) {
  if (!step.file) return "";
  return "; of a file: write " + fixed(step.file->write_ns_per_byte, 3) + " ns, read " +
         fixed(step.file->read_ns_per_byte, 3) + " ns";
}

std::string reading_text(const StepCosts& step) {
  if (step.read_us <= 0) return "";
  return "; reading the samples of a microbatch takes " + fixed(step.read_us, 1) +
         " us of a computing core";
}

std::string step_text(const Profile& profile) {
  return "\nper element and step: update " + fixed(profile.step.optimizer_ns, 3) + " ns, fold " +
         fixed(profile.step.fold_ns, 3) + " ns; per byte of a message: copy " +
         fixed(profile.step.copy_ns_per_byte, 3) + " ns" + file_text(profile.step) +
         reading_text(profile.step) + "\n";
}

}  // namespace

std::string show(const Profile& profile, const graph::Graph& recorded) {
  const std::vector<NodeTime> times = node_times(profile, recorded);
  NodeTime sum;
  for (const NodeTime& time : times) {
    sum.forward_us += time.forward_us;
    sum.input_us += time.input_us;
    sum.weight_us += time.weight_us;
  }
  return "profile of microbatches of " + std::to_string(profile.microbatch) + ": F " +
         fixed(sum.forward_us / 1000, 3) + " ms, I " + fixed(sum.input_us / 1000, 3) + " ms, W " +
         fixed(sum.weight_us / 1000, 3) + " ms\n" + hardware_text(profile) +
         nodes_text(profile, recorded, times) + ranges_text(profile) + held_text(profile.held) +
         uncaptured_text(profile.uncaptured) + links_text(profile) + step_text(profile);
}

std::string show(const Profile& profile) {
  return "profile of microbatches of " + std::to_string(profile.microbatch) + ": " +
         std::to_string(profile.costs.size()) + " distinct of " +
         std::to_string(profile.cost_of.size()) + " nodes (which: --graph FILE)\n" +
         hardware_text(profile) + held_text(profile.held) + uncaptured_text(profile.uncaptured) +
         links_text(profile) + step_text(profile);
}

}  // namespace trireme::profile
