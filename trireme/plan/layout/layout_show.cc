#include "trireme/plan/layout/layout_show.h"

#include <cstdio>
#include <set>
#include <unordered_map>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/graph/text_table.h"
#include "trireme/plan/layout/parameter_map_json.h"

namespace trireme::layout {
namespace {

using graph::Table;
using graph::with_commas;

constexpr std::size_t kNameColumns = 36;

std::string count(std::int64_t number, const std::string& thing,
                  const std::string& plural_ending = "s") {
  return with_commas(number) + " " + thing + (number == 1 ? "" : plural_ending);
}

std::string milliseconds(double ms) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3g ms", ms);
  return text;
}

std::string summary(const Plan& plan) {
  const BatchLayout& batch = plan.batch;
  return "plan with " + count(static_cast<std::int64_t>(plan.stages.size()), "stage") + ", " +
         schedule_text(plan) + ", objective " + plan.objective + "\n  batch of " +
         count(batch.global_batch, "sample") + " in " + count(batch.lanes, "lane") + " of " +
         count(batch.microbatches_per_lane(), "microbatch", "es") + " of " +
         count(batch.microbatch, "sample") +
         (plan.threads == 1 ? "" : "\n  each rank with " + count(plan.threads, "thread")) +
         "\n  graph " + plan.graph_sha256 + "\n";
}

std::string roles_text(const Plan& plan) {
  Table table({"role", ">pipeline", ">data", ">shard", "ranks"});
  for (const Role& role : plan.roles) {
    std::string ranks;
    for (const int rank : role.placement)
      ranks += (ranks.empty() ? "" : " ") + std::to_string(rank);
    table.add({role.name, std::to_string(role.mesh.pipeline), std::to_string(role.mesh.data),
               std::to_string(role.mesh.shard), graph::shortened(ranks, 60)});
  }
  return "\nroles\n" + table.text();
}

/// Where ranks run several replicas: how many ranks each position has.
std::string replicas_text(const Plan& plan) {
  const Role& role = train_role(plan);
  if (role.is_even()) return "";
  Table table({">position", "stages", ">ranks", ">replicas of each"});
  for (int position = 0; position < role.mesh.pipeline; ++position) {
    std::string stages;
    for (const int stage : stages_at(plan, position)) {
      stages += (stages.empty() ? "" : " ") + std::to_string(stage);
    }
    table.add({std::to_string(position), stages, std::to_string(role.ranks_at(position).size()),
               std::to_string(role.replicas_per_rank(position))});
  }
  return "\nranks of the pipeline's positions\n" + table.text();
}

/// What a stage takes in, per microbatch and once.
struct StageNeeds {
  std::set<graph::ValueId> parameters;
  std::set<graph::ValueId> received;  ///< Outputs of nodes of earlier stages.
};

StageNeeds needs_of(const Stage& stage, const graph::Graph& graph,
                    const std::unordered_map<graph::NodeId, int>& positions) {
  const std::set<graph::NodeId> copies(stage.copies.begin(), stage.copies.end());
  StageNeeds needs;
  const auto add = [&](const graph::Node& node) {
    for (const graph::ValueId id : graph::input_values(node)) {
      const graph::Value& value = graph.values[id];
      if (value.source == graph::ValueSource::kParameter) needs.parameters.insert(id);
      if (value.source != graph::ValueSource::kNode || copies.contains(value.producer)) continue;
      if (positions.at(value.producer) < stage.begin) needs.received.insert(id);
    }
  };
  for (const graph::NodeId id : stage.copies) add(graph.nodes[positions.at(id)]);
  for (int position = stage.begin; position < stage.end; ++position) add(graph.nodes[position]);
  return needs;
}

std::string stages_text(const Plan& plan, const graph::Graph& graph) {
  const auto positions = graph::node_positions(graph);
  Table table(
      {">stage", ">nodes", "positions", "first", "last", ">elements", ">receives", ">copies"});
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    const StageNeeds needs = needs_of(stage, graph, positions);
    std::int64_t elements = 0, bytes = 0;
    for (const graph::ValueId id : needs.parameters) {
      elements += graph::num_elements_at(graph.values[id], plan.batch.microbatch);
    }
    for (const graph::ValueId id : needs.received) {
      bytes += graph::bytes_at(graph.values[id], plan.batch.microbatch);
    }
    table.add({std::to_string(s), std::to_string(stage.end - stage.begin),
               std::to_string(stage.begin) + ".." + std::to_string(stage.end - 1),
               graph::shortened(graph.nodes[stage.begin].name, kNameColumns),
               graph::shortened(graph.nodes[stage.end - 1].name, kNameColumns),
               with_commas(elements), graph::bytes_text(bytes),
               std::to_string(stage.copies.size())});
  }
  return "\nstages (elements of the parameters it uses; receives: forward, per microbatch)\n" +
         table.text();
}

std::string positions_text(const Plan& plan) {
  Table table({">stage", ">nodes", "positions", ">copies"});
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    table.add({std::to_string(s), std::to_string(stage.end - stage.begin),
               std::to_string(stage.begin) + ".." + std::to_string(stage.end - 1),
               std::to_string(stage.copies.size())});
  }
  return "\nstages (their nodes and parameters are in the graph: --graph FILE)\n" + table.text();
}

std::string recompute_text(const Plan& plan) {
  std::string text;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    if (!stage.recompute) continue;
    text += "  stage " + std::to_string(s) + ": ";
    if (stage.regions.empty()) {
      text += "whole\n";
      continue;
    }
    text +=
        std::to_string(stage.regions.size() + 1) + " regions, from " + std::to_string(stage.begin);
    for (const int begin : stage.regions) text += ", " + std::to_string(begin);
    text += "\n";
  }
  return text.empty() ? "" : "\nforwards that run again for the backward\n" + text;
}

std::string tie_owners_text(const Plan& plan) {
  if (plan.tie_owners.empty()) return "";
  Table table({"parameter", ">stage"});
  for (const TieOwner& owner : plan.tie_owners) {
    table.add({owner.parameter, std::to_string(owner.stage)});
  }
  return "\nowners of parameters used in several stages\n" + table.text();
}

std::string prediction_text(const Plan& plan) {
  if (!plan.prediction) return "\nno prediction: cut by hand, without a profile\n";
  const Prediction& prediction = *plan.prediction;
  std::string text = "\nprediction: step " + milliseconds(prediction.step_ms) + ", lower bound " +
                     milliseconds(prediction.lower_bound_ms) + "\n";
  for (std::size_t rank = 0; rank < prediction.peak_bytes.size(); ++rank) {
    text += "  rank " + std::to_string(rank) + " peak:";
    for (const auto& [kind, bytes] : prediction.peak_bytes[rank]) {
      text += " " + kind + " " + graph::bytes_text(bytes);
    }
    text += "\n";
  }
  for (std::size_t stage = 0; stage < prediction.limits.size(); ++stage) {
    text +=
        "  stage " + std::to_string(stage) + " is limited by " + prediction.limits[stage] + "\n";
  }
  return text;
}

}  // namespace

std::string schedule_text(const Plan& plan) {
  std::string text = "schedule " + plan.schedule.name;
  for (const auto& [name, number] : plan.schedule.parameters) {
    text += ", " + name + " " + std::to_string(number);
  }
  if (plan.balance == Balance::kSearch) return text;
  return text + ", cuts by balance " + std::string(balance_name(plan.balance));
}

std::string show(const Plan& plan, const graph::Graph& graph) {
  return summary(plan) + roles_text(plan) + replicas_text(plan) + stages_text(plan, graph) +
         recompute_text(plan) + tie_owners_text(plan) + prediction_text(plan);
}

std::string show(const Plan& plan) {
  return summary(plan) + roles_text(plan) + replicas_text(plan) + positions_text(plan) +
         recompute_text(plan) + tie_owners_text(plan) + prediction_text(plan);
}

namespace {

std::string buckets_text(const ParameterMap& map) {
  Table table({">bucket", ">stage", "kind", "dtype", ">elements", ">slots", ">shards"});
  for (std::size_t b = 0; b < map.buckets.size(); ++b) {
    const Bucket& bucket = map.buckets[b];
    table.add({std::to_string(b), std::to_string(bucket.stage),
               std::string(kBucketKindNames[static_cast<std::size_t>(bucket.kind)]),
               std::string(to_text(bucket.dtype)), with_commas(bucket.num_elements),
               std::to_string(bucket.slots.size()), std::to_string(bucket.shards.size())});
  }
  return table.text();
}

std::string slots_text(const ParameterMap& map) {
  Table table({">bucket", "parameter", ">site", ">offset", ">elements", ">first norm block"});
  for (std::size_t b = 0; b < map.buckets.size(); ++b) {
    for (const Slot& slot : map.buckets[b].slots) {
      table.add({std::to_string(b), slot.parameter, std::to_string(slot.site),
                 with_commas(slot.offset_elements), with_commas(slot.num_elements),
                 with_commas(slot.first_norm_block)});
    }
  }
  return "\nslots, in the order in which the backward fills them\n" + table.text();
}

}  // namespace

std::string show(const ParameterMap& map) {
  return "parameter map\n  graph " + map.graph_sha256 + "\n  plan " + map.plan_sha256 +
         "\n\nbuckets\n" + buckets_text(map) + slots_text(map);
}

}  // namespace trireme::layout
