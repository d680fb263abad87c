#include <cstdio>
#include <set>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::profile {
namespace {

[[noreturn]] void fail(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "profile: " + problem);
}

std::string at(const std::string& list, std::size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

std::string short_text(double number) {
  char text[40];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

void check_amount(double amount, const std::string& field) {
  if (amount >= 0 && amount <= kMostAmount) return;
  fail(field + " must be from 0 to " + short_text(kMostAmount) + ", got " + short_text(amount));
}

void check_bytes(std::int64_t bytes, const std::string& field) {
  if (bytes >= 0 && bytes <= kMostBytes) return;
  fail(field + " must be from 0 to " + std::to_string(kMostBytes) + ", got " +
       std::to_string(bytes));
}

void check_cost(const NodeCost& cost, const std::string& subject) {
  check_amount(cost.forward_us, subject + ".forward_us");
  check_amount(cost.input_us, subject + ".input_us");
  check_amount(cost.weight_us, subject + ".weight_us");
  check_amount(cost.spread, subject + ".spread");
  check_bytes(cost.kept_bytes, subject + ".kept_bytes");
  check_bytes(cost.forward_workspace_bytes, subject + ".forward_workspace_bytes");
  check_bytes(cost.backward_workspace_bytes, subject + ".backward_workspace_bytes");
}

void check_indices(const std::vector<int>& indices, std::size_t count, const std::string& field) {
  for (const int index : indices) {
    if (index >= 0 && static_cast<std::size_t>(index) < count) continue;
    fail(field + " has " + std::to_string(index) + ", but a node of this cost has " +
         std::to_string(count));
  }
}

void check_cost_of(const Profile& profile, const graph::Graph& recorded) {
  if (profile.cost_of.size() != recorded.nodes.size()) {
    fail("cost_of has " + std::to_string(profile.cost_of.size()) + " entries, but the graph has " +
         std::to_string(recorded.nodes.size()) + " nodes; profile this graph");
  }
  graph::NodeId last = -1;
  for (std::size_t p = 0; p < profile.cost_of.size(); ++p) {
    const graph::Node& node = recorded.nodes[p];
    if (node.copy_of >= 0 || node.id <= last) {
      fail("the graph is not as it was recorded: node " + std::to_string(node.id) +
           " is a copy or out of the order of ids; pass the recorded one");
    }
    last = node.id;
    const int index = profile.cost_of[p];
    if (index < 0 || static_cast<std::size_t>(index) >= profile.costs.size()) {
      fail(at("cost_of", p) + " is " + std::to_string(index) + ", but there are " +
           std::to_string(profile.costs.size()) + " costs");
    }
    const NodeCost& cost = profile.costs[index];
    const std::string subject = at("costs", static_cast<std::size_t>(index));
    check_indices(cost.saved_inputs, graph::input_values(node).size(), subject + ".saved_inputs");
    check_indices(cost.saved_outputs, node.outputs.size(), subject + ".saved_outputs");
  }
}

void check_ranges(const Profile& profile) {
  int last = 0;
  for (std::size_t r = 0; r < profile.ranges.size(); ++r) {
    const RangeTime& range = profile.ranges[r];
    if (range.begin < last || range.end <= range.begin ||
        range.end > static_cast<int>(profile.cost_of.size())) {
      fail(at("ranges", r) + " [" + std::to_string(range.begin) + ", " + std::to_string(range.end) +
           ") is empty, overlaps the one before or ends beyond the " +
           std::to_string(profile.cost_of.size()) + " nodes");
    }
    last = range.end;
    check_amount(range.forward_us, at("ranges", r) + ".forward_us");
    check_amount(range.backward_us, at("ranges", r) + ".backward_us");
  }
}

void check_held(const HeldTimes& held) {
  check_bytes(held.one_bytes, "held.one_bytes");
  check_bytes(held.held_bytes, "held.held_bytes");
  if (held.one_bytes < 0 || held.held_bytes <= held.one_bytes) {
    fail("held.held_bytes must be more than held.one_bytes, which is not negative");
  }
  check_amount(held.forward, "held.forward");
  check_amount(held.backward, "held.backward");
  if (held.forward < 1 || held.backward < 1) fail("held.forward and held.backward are at least 1");
}

void check_uncaptured(const UncapturedTimes& uncaptured) {
  check_amount(uncaptured.forward, "uncaptured.forward");
  check_amount(uncaptured.backward, "uncaptured.backward");
  if (uncaptured.forward < 1 || uncaptured.backward < 1) {
    fail("uncaptured.forward and uncaptured.backward are at least 1");
  }
}

void check_links(const std::vector<LinkTable>& links) {
  std::set<LinkKind> kinds;
  for (std::size_t l = 0; l < links.size(); ++l) {
    const std::string subject = at("links", l);
    if (!kinds.insert(links[l].kind).second) fail(subject + ".kind appears twice");
    if (links[l].times.empty()) fail(subject + ".times is empty");
    std::int64_t last = -1;
    for (std::size_t t = 0; t < links[l].times.size(); ++t) {
      const LinkTime& time = links[l].times[t];
      const std::string entry = at(subject + ".times", t);
      if (time.bytes <= last) fail(entry + ".bytes must ascend from 0");
      last = time.bytes;
      check_amount(time.alone_us, entry + ".alone_us");
      check_amount(time.beside_compute_us, entry + ".beside_compute_us");
    }
  }
}

void check_step(const StepCosts& step) {
  check_amount(step.optimizer_ns, "step.optimizer_ns");
  check_amount(step.fold_ns, "step.fold_ns");
  check_amount(step.copy_ns_per_byte, "step.copy_ns_per_byte");
  check_amount(step.read_us, "step.read_us");
  std::int64_t last = -1;
  for (std::size_t m = 0; m < step.messages.size(); ++m) {
    const std::string entry = at("step.messages", m);
    if (step.messages[m].bytes <= last) fail(entry + ".bytes must ascend from 0");
    last = step.messages[m].bytes;
    check_amount(step.messages[m].us, entry + ".us");
  }
  if (!step.file) return;
  check_amount(step.file->write_ns_per_byte, "step.file.write_ns_per_byte");
  check_amount(step.file->read_ns_per_byte, "step.file.read_ns_per_byte");
}

}  // namespace

void check_contents(const Profile& profile) {
  if (profile.microbatch < 1 || profile.microbatch > kMostSamples) {
    fail("microbatch must be from 1 to " + std::to_string(kMostSamples) + ", got " +
         std::to_string(profile.microbatch));
  }
  if (profile.num_busy_ranks < 1) {
    fail("num_busy_ranks must be at least 1, got " + std::to_string(profile.num_busy_ranks));
  }
  if (profile.threads < 1) {
    fail("threads must be at least 1, got " + std::to_string(profile.threads));
  }
  for (std::size_t c = 0; c < profile.costs.size(); ++c) {
    check_cost(profile.costs[c], at("costs", c));
  }
  check_ranges(profile);
  if (profile.held) check_held(*profile.held);
  if (profile.uncaptured) check_uncaptured(*profile.uncaptured);
  check_links(profile.links);
  check_step(profile.step);
}

void check_same_graph(const Profile& profile, const std::string& graph_sha256) {
  if (profile.graph_sha256 == graph_sha256) return;
  fail("it is of another graph: it names " + profile.graph_sha256.substr(0, 64) +
       ", but this one is " + graph_sha256 + "; profile this graph");
}

void check_countable(const Profile& profile, const graph::Graph& graph,
                     std::int64_t num_microbatches) {
  constexpr double kMost = 0x1p60;
  constexpr double kOnce = 32;  // of gradients, states of the optimizer and what else is held once
  double bytes = 0;
  for (const graph::Value& value : graph.values) {
    bytes += static_cast<double>(graph::bytes_at(value, profile.microbatch));
  }
  for (const int index : profile.cost_of) {
    const NodeCost& cost = profile.costs[index];
    bytes += static_cast<double>(cost.kept_bytes) +
             static_cast<double>(cost.forward_workspace_bytes) +
             static_cast<double>(cost.backward_workspace_bytes);
  }
  if (bytes * (static_cast<double>(num_microbatches) + kOnce) <= kMost) return;
  fail("the tensors of one microbatch come to " + short_text(bytes) + " bytes, and a step has " +
       std::to_string(num_microbatches) +
       " microbatches: more than can be counted; look for shapes that are too large");
}

void check(const Profile& profile, const graph::Graph& recorded) {
  check_cost_of(profile, recorded);
  check_contents(profile);
}

}  // namespace trireme::profile
