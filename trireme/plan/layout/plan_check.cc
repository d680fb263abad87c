#include "trireme/plan/layout/plan_check.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <unordered_map>

#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_check.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {
namespace {

[[noreturn]] void fail(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "plan: " + problem);
}

void check_hash(const Plan& plan, const std::string& graph_sha256) {
  if (plan.graph_sha256 == graph_sha256) return;
  fail("it was made for another graph: it names the graph " + plan.graph_sha256.substr(0, 64) +
       ", but this one is " + graph_sha256 +
       "; make the plan again for this graph, or load the graph it was made for");
}

void check_role(const Role& role) {
  const std::string subject = "role '" + role.name + "': ";
  const Mesh& mesh = role.mesh;
  if (mesh.pipeline < 1 || mesh.data < 1 || mesh.shard < 1) {
    fail(subject + "a dimension of its mesh is below 1");
  }
  const std::int64_t plane = static_cast<std::int64_t>(mesh.pipeline) * mesh.data;
  const auto num_ranks = static_cast<std::int64_t>(role.placement.size());
  if (num_ranks % plane != 0 || num_ranks / plane != mesh.shard) {
    fail(subject + "placement has " + std::to_string(num_ranks) + " ranks, but the mesh is " +
         std::to_string(mesh.pipeline) + " x " + std::to_string(mesh.data) + " x " +
         std::to_string(mesh.shard));
  }
  if (mesh.shard != 1) {
    fail(subject + "mesh.shard is " + std::to_string(mesh.shard) +
         "; tensors are not sharded so far, make it 1");
  }
}

/// A rank runs one position.
void check_positions_of_ranks(const Role& role, const std::string& subject) {
  std::map<int, int> position_of;
  for (std::size_t i = 0; i < role.placement.size(); ++i) {
    const int rank = role.placement[i], position = static_cast<int>(i) / role.mesh.data;
    if (rank < 0) fail(subject + "a rank is negative");
    const int first = position_of.try_emplace(rank, position).first->second;
    if (first == position) continue;
    fail(subject + "rank " + std::to_string(rank) + " is placed at positions " +
         std::to_string(first) + " and " + std::to_string(position) +
         " of the pipeline; a rank runs one, which may have several stages");
  }
}

/// Of its position as many replicas as the other ranks there, one behind the other.
void check_replicas_of_ranks(const Role& role, int position, const std::string& subject) {
  const std::string at = subject + "at position " + std::to_string(position) + " ";
  const auto begin = role.placement.begin() + std::ptrdiff_t{position} * role.mesh.data;
  const std::vector<int> ranks = role.ranks_at(position);
  if (std::set<int>(ranks.begin(), ranks.end()).size() != ranks.size()) {
    fail(at +
         "a rank runs replicas that are not one behind the other; its sums would have another "
         "order: place it at neighbours");
  }
  const int expected = role.replicas_per_rank(position);
  for (const int rank : ranks) {
    const auto num = std::count(begin, begin + role.mesh.data, rank);
    if (num == expected) continue;
    fail(at + "rank " + std::to_string(ranks.front()) + " runs " + std::to_string(expected) +
         " of the " + std::to_string(role.mesh.data) + " replicas and rank " +
         std::to_string(rank) + " runs " + std::to_string(num) +
         "; give the ranks of a position as many each");
  }
}

/// Every stage has a place in the pipeline, and every place a stage.
void check_positions(const Plan& plan, int num_positions) {
  const auto num_stages = static_cast<int>(plan.stages.size());
  for (int s = 0; s < num_stages; ++s) {
    const int position = position_of(plan, s);
    if (position >= 0 && position < num_positions) continue;
    fail("stage " + std::to_string(s) + " runs at position " + std::to_string(position) +
         " of a pipeline of " + std::to_string(num_positions) +
         "; give it a `position` below that, or make the mesh's `pipeline` larger");
  }
  for (int position = 0; position < num_positions; ++position) {
    if (!stages_at(plan, position).empty()) continue;
    fail(std::to_string(num_stages) + " stages for a pipeline of " + std::to_string(num_positions) +
         ": none runs at position " + std::to_string(position) +
         "; give one there, or make the mesh's `pipeline` smaller");
  }
}

void check_roles(const Plan& plan) {
  const Mesh& mesh = train_role(plan).mesh;
  std::set<std::string> names;
  for (const Role& role : plan.roles) {
    if (!names.insert(role.name).second) fail("role '" + role.name + "' appears twice");
    check_role(role);
    if (role.name != "train") {
      fail("role '" + role.name + "': ranks do nothing but train so far; remove the role");
    }
    const std::string subject = "role '" + role.name + "': ";
    check_positions_of_ranks(role, subject);
    for (int position = 0; position < role.mesh.pipeline; ++position) {
      check_replicas_of_ranks(role, position, subject);
    }
  }
  check_positions(plan, mesh.pipeline);
  if (plan.batch.lanes % mesh.data != 0) {
    fail(std::to_string(mesh.data) + " data replicas do not divide the " +
         std::to_string(plan.batch.lanes) + " lanes; make lanes a multiple");
  }
}

void check_stages(const Plan& plan, const graph::Graph& graph) {
  const int num_nodes = static_cast<int>(graph.nodes.size());
  const std::vector<bool> allowed = graph::allowed_cuts(graph);
  int expected = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    const std::string subject = "stage " + std::to_string(s) + " ";
    if (stage.begin != expected) {
      fail(subject + "should begin at position " + std::to_string(expected) + ", but begins at " +
           std::to_string(stage.begin));
    }
    if (stage.end <= stage.begin || stage.end > num_nodes) {
      fail(subject + "[" + std::to_string(stage.begin) + ", " + std::to_string(stage.end) +
           ") is empty or beyond the " + std::to_string(num_nodes) + " nodes");
    }
    if (stage.begin > 0 && !allowed[stage.begin]) {
      fail("no cut may fall at position " + std::to_string(stage.begin) + ": " +
           graph::why_forbidden(graph, stage.begin) +
           "; `show` of the graph lists the allowed cuts");
    }
    expected = stage.end;
  }
  if (expected != num_nodes) {
    fail("the stages end at position " + std::to_string(expected) + " of " +
         std::to_string(num_nodes) + " nodes");
  }
}

/// Judges the copies that a stage runs.
class StageCopies {
 public:
  explicit StageCopies(const graph::Graph& graph)
      : graph_(graph),
        positions_(graph::node_positions(graph)),
        histories_(graph::storage_histories(graph)) {
    for (const graph::Parameter& parameter : graph.parameters) {
      if (!graph.values[parameter.value].requires_grad) continue;
      trainable_.emplace(parameter.value, parameter.name);
    }
    for (const graph::Buffer& buffer : graph.buffers) {
      if (buffer.policy == graph::BufferPolicy::kReadOnly) continue;
      written_.emplace(graph.values[buffer.value].storage_id, buffer.name);
    }
  }

  void check(const Stage& stage, const std::string& subject) const {
    int last = -1;
    for (const graph::NodeId id : stage.copies) {
      const std::string copy = subject + "copies: ";
      const int position = position_of(id, copy);
      if (position <= last)
        fail(copy + "node " + std::to_string(id) + " is not in execution order");
      if (position >= stage.begin) {
        fail(copy + "node " + std::to_string(id) + " is not of an earlier stage");
      }
      check_copy(graph_.nodes[position], position, copy);
      last = position;
    }
  }

 private:
  int position_of(graph::NodeId id, const std::string& subject) const {
    const auto found = positions_.find(id);
    if (found == positions_.end()) fail(subject + "there is no node " + std::to_string(id));
    return found->second;
  }

  /// What a node computes in a later stage must be what it computed at `position`.
  void check_copy(const graph::Node& node, int position, const std::string& subject) const {
    const auto refuse = [&](const std::string& reason) {
      fail(subject + graph::internal::describe(node) + " cannot be copied: " + reason);
    };
    if (!node.writes.empty()) refuse("it writes in place");
    std::vector<graph::ValueId> values = graph::input_values(node);
    for (const graph::ValueId id : values) {
      const auto parameter = trainable_.find(id);
      if (parameter != trainable_.end()) {
        refuse("it uses the trainable parameter '" + parameter->second +
               "'; copy it in the graph, before planning");
      }
      const auto buffer = written_.find(graph_.values[id].storage_id);
      if (buffer != written_.end()) {
        refuse("it reads the buffer '" + buffer->second + "', which is written");
      }
    }
    for (const graph::ValueId id : node.outputs) {
      if (id == -1) continue;
      if (graph_.values[id].requires_grad) refuse("an output needs a gradient");
      values.push_back(id);
    }
    for (const graph::ValueId id : values) {
      const auto history = histories_.find(graph_.values[id].storage_id);
      if (history == histories_.end()) continue;
      const std::vector<int>& writes = history->second.writes;
      // A later stage gets the batch as it was at first, and everything else as it is at the cut.
      const auto write = graph::is_outside(graph_.values[id].source)
                             ? writes.begin()
                             : std::upper_bound(writes.begin(), writes.end(), position);
      if (write == writes.end()) continue;
      refuse("the memory of its value " + std::to_string(id) + " is written " +
             (*write < position ? "before" : "later") + " by " +
             graph::internal::describe(graph_.nodes[*write]));
    }
  }

  const graph::Graph& graph_;
  std::unordered_map<graph::NodeId, int> positions_;
  std::unordered_map<int, graph::StorageHistory> histories_;
  std::unordered_map<graph::ValueId, std::string> trainable_;
  std::unordered_map<int, std::string> written_;
};

void check_regions(const Stage& stage, const graph::Graph& graph, const std::string& subject) {
  if (stage.regions.empty()) return;
  if (!stage.recompute) {
    fail(subject + "it has regions, but does not recompute; make `recompute` true, or remove them");
  }
  const std::vector<bool> allowed = graph::allowed_cuts(graph);
  int last = stage.begin;
  for (const int begin : stage.regions) {
    if (begin <= last || begin >= stage.end) {
      fail(subject + "a region begins at position " + std::to_string(begin) +
           "; regions but the first begin behind one another, from " +
           std::to_string(stage.begin + 1) + " to " + std::to_string(stage.end - 1));
    }
    if (!allowed[begin]) {
      fail(subject + "no region may begin at position " + std::to_string(begin) + ": " +
           graph::why_forbidden(graph, begin) + "; `show` of the graph lists the allowed cuts");
    }
    last = begin;
  }
}

void check_recomputed(const Plan& plan, const graph::Graph& graph) {
  for (int s = 0; s < static_cast<int>(plan.stages.size()); ++s) {
    const std::string subject = "stage " + std::to_string(s);
    check_regions(plan.stages[s], graph, subject + ": ");
    if (!plan.stages[s].recompute) continue;
    const std::string problem = why_not_recomputed(graph, plan, s);
    if (!problem.empty()) fail(subject + " cannot recompute: " + problem);
  }
}

void check_copies(const Plan& plan, const graph::Graph& graph) {
  if (std::ranges::all_of(plan.stages, [](const Stage& stage) { return stage.copies.empty(); })) {
    return;
  }
  const StageCopies copies(graph);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    copies.check(plan.stages[s], "stage " + std::to_string(s) + ": ");
  }
}

void check_tie_owners(const Plan& plan, const graph::Graph& graph) {
  if (plan.tie_owners.empty()) return;
  const auto positions = graph::node_positions(graph);
  std::unordered_map<std::string, std::set<int>> stages_of;
  for (const graph::UseSite& site : graph::use_sites(graph)) {
    stages_of[graph.parameters[site.parameter].name].insert(
        stage_of(plan, positions.at(site.nodes.front())));
  }
  std::set<std::string> seen;
  for (const TieOwner& owner : plan.tie_owners) {
    const std::string subject = "tie owner of '" + owner.parameter + "': ";
    if (!seen.insert(owner.parameter).second) fail(subject + "given twice");
    const auto found = stages_of.find(owner.parameter);
    if (found == stages_of.end()) fail(subject + "the graph has no such parameter in use");
    if (!found->second.contains(owner.stage)) {
      fail(subject + "stage " + std::to_string(owner.stage) + " does not use it; the first that " +
           "does is " + std::to_string(*found->second.begin()));
    }
  }
}

}  // namespace

void check_batch(const BatchLayout& batch) {
  if (batch.global_batch < 1 || batch.microbatch < 1 || batch.lanes < 1 ||
      batch.global_batch > kMaxBatch) {
    fail("global_batch, microbatch and lanes must be from 1 to " + std::to_string(kMaxBatch));
  }
  const std::string b = std::to_string(batch.microbatch);
  if (batch.global_batch % batch.microbatch != 0) {
    fail("a microbatch of " + b + " samples does not divide the global batch of " +
         std::to_string(batch.global_batch) + "; change one of them");
  }
  if (batch.num_microbatches() % batch.lanes != 0) {
    fail(std::to_string(batch.lanes) + " lanes do not divide the " +
         std::to_string(batch.num_microbatches()) + " microbatches of a step (" +
         std::to_string(batch.global_batch) + " samples in microbatches of " + b + ")");
  }
}

std::string why_not_recomputed(const graph::Graph& graph, const Plan& plan, int stage) {
  std::set<int> deferred;  // Storages of buffers whose changes come at the step's end.
  for (const graph::Buffer& buffer : graph.buffers) {
    const bool is_deferred = buffer.policy == graph::BufferPolicy::kBatchNorm ||
                             buffer.policy == graph::BufferPolicy::kCounter;
    if (is_deferred) deferred.insert(graph.values[buffer.value].storage_id);
  }
  std::set<int> made;  // Storages that are new in each forward.
  const std::vector<int> positions = stage_positions(graph, plan)[static_cast<std::size_t>(stage)];
  for (const int position : positions) {
    const graph::Node& node = graph.nodes[static_cast<std::size_t>(position)];
    if (node.op == "opaque") {
      return graph::internal::describe(node) +
             " is opaque code, which may do something else the second time";
    }
    for (const graph::ValueId id : node.writes) {
      const int storage = graph.values[id].storage_id;
      if (made.contains(storage) || deferred.contains(storage)) continue;
      return graph::internal::describe(node) +
             " writes into memory that the stage does not make, and would do so twice";
    }
    std::set<int> taken;
    for (const graph::ValueId id : graph::input_values(node)) {
      taken.insert(graph.values[id].storage_id);
    }
    for (const graph::ValueId id : node.outputs) {
      if (id < 0 || taken.contains(graph.values[id].storage_id)) continue;
      made.insert(graph.values[id].storage_id);
    }
  }
  return "";
}

void check(const Plan& plan, const std::string& graph_sha256, const graph::Graph& graph) {
  check_hash(plan, graph_sha256);
  check_batch(plan.batch);
  if (plan.bucket_bytes < 1) {
    fail("bucket_bytes must be at least 1, got " + std::to_string(plan.bucket_bytes));
  }
  if (plan.threads < 1) fail("threads must be at least 1, got " + std::to_string(plan.threads));
  graph::check_samples(graph, plan.batch.microbatch);
  if (plan.stages.empty()) fail("it has no stages");
  if (plan.schedule.name.empty()) fail("its schedule has no name");
  check_roles(plan);
  check_stages(plan, graph);
  check_copies(plan, graph);
  check_recomputed(plan, graph);
  check_tie_owners(plan, graph);
  if (plan.sharded_parameters && !plan.sharded_state) {
    fail(
        "sharded_parameters is true and sharded_state is not; who has a part of a parameter "
        "updates that: make it true");
  }
  if (plan.sharded_state && !train_role(plan).is_even()) {
    fail(
        "sharded_state is true and some ranks run several replicas; shards are of replicas so far: "
        "make it false, or place a rank for each replica");
  }
}

graph::Graph checked_graph(const graph::Graph& recorded, const Plan& plan) {
  const std::string graph_sha256 = graph::graph_sha256(recorded);
  check_hash(plan, graph_sha256);
  graph::Graph planned = planned_graph(recorded, plan);
  check(plan, graph_sha256, planned);
  return planned;
}

}  // namespace trireme::layout
