#include "trireme/plan/schedule/step_facts.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::schedule {
namespace {

using layout::BucketKind;
using layout::ParameterMap;

[[noreturn]] void fail(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "step program: " + problem);
}

void check_mesh(const layout::Mesh& mesh) {
  if (mesh.shard == 1) return;
  fail("the mesh has " + std::to_string(mesh.shard) + " shards; only 1 is possible so far");
}

}  // namespace

bool keeps_bits(const BatchLayout& batch, std::int64_t replicas) {
  return replicas == 1 || (batch.lanes % replicas == 0 &&
                           std::has_single_bit(static_cast<std::uint64_t>(batch.lanes / replicas)));
}

namespace {

/// Every rank's lanes must be one subtree of the fold over lanes.
void check_replicas(const BatchLayout& batch, const StepFacts& facts,
                    const ProgramOptions& options) {
  const int replicas = facts.num_replicas();
  if (batch.lanes % replicas != 0) {
    fail(std::to_string(replicas) + " data replicas do not divide the " +
         std::to_string(batch.lanes) + " lanes; make lanes a multiple");
  }
  for (int position = 0; position < facts.num_positions(); ++position) {
    const int ranks = facts.num_ranks_at(position);
    if (options.tolerant || keeps_bits(batch, ranks)) continue;
    const std::string what =
        ranks == replicas ? " data replicas" : " ranks at position " + std::to_string(position);
    fail(std::to_string(batch.lanes) + " lanes on " + std::to_string(ranks) + what + " are " +
         std::to_string(batch.lanes / ranks) +
         " each, which is no power of two: the sum would depend on the number of " +
         (ranks == replicas ? "replicas" : "ranks") +
         "; choose lanes = " + (ranks == replicas ? "replicas" : "ranks") +
         " x 1, 2, 4, ..., or accept other last bits with --tolerant");
  }
}

void check_shards(const layout::Plan& plan) {
  if (!plan.sharded_state || layout::train_role(plan).is_even()) return;
  fail(
      "state is in shards of replicas, and some ranks run several of them; shard none, or place a "
      "rank for each replica");
}

/// Number of ranks of the world; all of them have a place in some role.
int count_ranks(const layout::Plan& plan) {
  std::set<int> ranks;
  for (const layout::Role& role : plan.roles) {
    ranks.insert(role.placement.begin(), role.placement.end());
  }
  const int count = static_cast<int>(ranks.size());
  if (*ranks.rbegin() != count - 1) {
    fail("the roles place " + std::to_string(count) + " ranks, up to rank " +
         std::to_string(*ranks.rbegin()) + "; number them from 0 without gaps");
  }
  return count;
}

void add_crossings(const std::vector<layout::Crossing>& crossings, std::vector<Message>& messages) {
  for (const layout::Crossing& crossing : crossings) {
    const std::vector<int>& chain = crossing.stages;
    for (std::size_t i = 1; i < chain.size(); ++i) {
      messages.push_back({ChannelKind::kValue, chain[0], chain[i], crossing.value});
      if (!crossing.has_gradient) continue;
      messages.push_back({ChannelKind::kGradient, chain[i], chain[i - 1], crossing.value});
    }
  }
}

/// Index in Graph::parameters by name.
std::map<std::string, int> parameter_indices(const graph::Graph& planned) {
  std::map<std::string, int> indices;
  for (std::size_t p = 0; p < planned.parameters.size(); ++p) {
    indices[planned.parameters[p].name] = static_cast<int>(p);
  }
  return indices;
}

/// A use site's place in graph::use_sites, by (parameter, site).
std::map<std::pair<int, int>, int> site_indices(const graph::Graph& planned) {
  std::map<std::pair<int, int>, int> indices;
  for (const graph::UseSite& site : graph::use_sites(planned)) {
    const int index = static_cast<int>(indices.size());
    indices[{site.parameter, site.site}] = index;
  }
  return indices;
}

void add_ties(const graph::Graph& planned, const layout::Plan& plan, const ParameterMap& map,
              std::vector<Message>& messages) {
  const auto parameters = parameter_indices(planned);
  const auto sites = site_indices(planned);
  const std::map<std::string, int> owners = layout::owner_stages(map);
  std::map<std::pair<int, int>, int> mirrors;  // By parameter and position: the first stage there.
  for (const layout::Bucket& bucket : map.buckets) {
    for (const layout::Slot& slot : bucket.slots) {
      const int owner = owners.at(slot.parameter);
      if (layout::position_of(plan, bucket.stage) == layout::position_of(plan, owner)) continue;
      const int parameter = parameters.at(slot.parameter);
      const int site = sites.at({parameter, slot.site});
      messages.push_back({ChannelKind::kTieGradient, bucket.stage, owner, site});
      if (bucket.kind != BucketKind::kMirror) continue;
      const int position = layout::position_of(plan, bucket.stage);
      int& mirror = mirrors.try_emplace({parameter, position}, bucket.stage).first->second;
      mirror = std::min(mirror, bucket.stage);
    }
  }
  for (const auto& [place, stage] : mirrors) {
    const int owner = owners.at(planned.parameters[place.first].name);
    messages.push_back({ChannelKind::kTieValue, owner, stage, place.first});
  }
}

}  // namespace

bool carries_messages(ActionKind kind) { return kind != ActionKind::kBackwardWeight; }

ChannelKind carried_by(ActionKind kind) {
  return kind == ActionKind::kForward ? ChannelKind::kValue : ChannelKind::kGradient;
}

bool completes_gradients(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight;
}

std::vector<Action> actions_of_rank(const std::vector<Action>& actions, int num_replicas,
                                    int num_microbatches) {
  std::vector<Action> merged;
  for (const Action& action : actions) {
    for (int replica = 0; replica < num_replicas; ++replica) {
      merged.push_back(action);
      merged.back().microbatch += replica * num_microbatches;
    }
  }
  return merged;
}

int first_of_part(int num_microbatches, int num_replicas, int replica) {
  return static_cast<int>(std::int64_t{num_microbatches} * replica / num_replicas);
}

std::vector<int> StepFacts::stages_at(int position) const {
  std::vector<int> found;
  for (int s = 0; s < num_stages(); ++s) {
    if (positions[s] == position) found.push_back(s);
  }
  return found;
}

bool StepFacts::has_shards() const {
  return std::ranges::any_of(stages,
                             [](const StageFacts& stage) { return !stage.sharded.empty(); });
}

int StepFacts::num_microbatches_of(int replica) const {
  if (!num_evaluated) return num_microbatches;
  return first_of_part(*num_evaluated, num_replicas(), replica + 1) -
         first_of_part(*num_evaluated, num_replicas(), replica);
}

namespace {

/// Of an evaluation whose stages gather their values for each round: values between stages are smaller.
constexpr int kGatheredRound = 16;

/// In order: first what all ranks must know; where a gradient is not finite the norm ends the step,
/// and buffers stay as they were.
constexpr std::array<TailPart, 9> kTrainingTail = {{
    {.name = "exchange", .kind = OperationKind::kExchange},
    {.name = "joins", .kind = OperationKind::kJoin},
    {.name = "tie gradients", .ties = ChannelKind::kTieGradient},
    {.name = "tie sum", .kind = OperationKind::kTieSum},
    {.name = "norm", .kind = OperationKind::kNorm},
    {.name = "commit", .kind = OperationKind::kCommit},
    {.name = "update", .kind = OperationKind::kUpdate},
    {.name = "gathers", .kind = OperationKind::kGather},
    {.name = "tie values", .ties = ChannelKind::kTieValue},
}};

/// What a step has whatever it is for.
StepFacts common_facts(const layout::Plan& plan) {
  StepFacts facts;
  facts.role = layout::train_role(plan);
  check_mesh(facts.role.mesh);
  check_shards(plan);
  for (int position = 0; position < facts.num_positions(); ++position) {
    facts.per_rank.push_back(facts.role.replicas_per_rank(position));
  }
  facts.num_ranks = count_ranks(plan);
  facts.stages.resize(plan.stages.size());
  for (int s = 0; s < facts.num_stages(); ++s) {
    const int position = layout::position_of(plan, s);
    if (position < 0 || position >= facts.num_positions()) {
      fail("stage " + std::to_string(s) + " is at position " + std::to_string(position) +
           " of a pipeline of " + std::to_string(facts.num_positions()));
    }
    facts.positions.push_back(position);
  }
  return facts;
}

void give_messages(StepFacts& facts) {
  std::sort(facts.messages.begin(), facts.messages.end());
  for (const Message& message : facts.messages) {
    const auto kind = static_cast<std::size_t>(message.kind);
    facts.stages[message.from_stage].sends[kind].push_back(message);
    facts.stages[message.to_stage].recvs[kind].push_back(message);
  }
}

}  // namespace

StepFacts step_facts(const graph::Graph& planned, const layout::Plan& plan,
                     const layout::ParameterMap& map, const ProgramOptions& options) {
  StepFacts facts = common_facts(plan);
  check_replicas(plan.batch, facts, options);
  facts.num_microbatches = layout::num_microbatches_of_replica(plan);
  const std::vector<layout::Crossing> crossings = layout::crossings(planned, plan);
  add_crossings(crossings, facts.messages);
  add_ties(planned, plan, map, facts.messages);
  give_messages(facts);
  const auto losses = layout::stage_losses(planned, plan, crossings);
  for (std::size_t s = 0; s < losses.size(); ++s) {
    const int num_ranks = facts.num_ranks_at(facts.positions[s]);
    facts.stages[s].weighs = num_ranks > 1 && !losses[s].weighed.empty();
    facts.stages[s].offloads = plan.stages[s].offload;
  }
  const std::vector<bool> sharded = layout::sharded_buckets(map, plan);
  for (std::size_t b = 0; b < map.buckets.size(); ++b) {
    StageFacts& stage = facts.stages[map.buckets[b].stage];
    stage.buckets.push_back(static_cast<int>(b));
    if (map.buckets[b].kind != layout::BucketKind::kOwner) continue;
    (sharded[b] ? stage.sharded : stage.owned).push_back(static_cast<int>(b));
  }
  facts.tail.assign(kTrainingTail.begin(), kTrainingTail.end());
  facts.has_norm = options.has_norm;
  facts.has_gathers = plan.sharded_state && facts.num_replicas() > 1;
  std::erase_if(facts.tail, [&](const TailPart& part) {
    return (part.kind == OperationKind::kNorm && !facts.has_norm) ||
           (part.kind == OperationKind::kGather && !facts.has_gathers);
  });
  return facts;
}

ShardedBuckets sharded_by_stage(const layout::Plan& plan, const layout::ParameterMap& map) {
  const std::vector<bool> sharded = layout::sharded_buckets(map, plan);
  ShardedBuckets stages(plan.stages.size());
  for (std::size_t b = 0; b < map.buckets.size(); ++b) {
    if (sharded[b]) stages[map.buckets[b].stage].push_back(static_cast<int>(b));
  }
  return stages;
}

StepFacts evaluation_facts(const graph::Graph& planned, const layout::Plan& plan,
                           int num_microbatches, const ShardedBuckets& sharded) {
  if (num_microbatches < 1) fail("an evaluation needs a microbatch");
  StepFacts facts = common_facts(plan);
  facts.num_evaluated = num_microbatches;
  facts.num_microbatches = (num_microbatches - 1) / facts.num_replicas() + 1;
  add_crossings(layout::crossings(planned, plan), facts.messages);
  std::erase_if(facts.messages, [](const Message& m) { return m.kind != ChannelKind::kValue; });
  give_messages(facts);
  for (std::size_t s = 0; s < sharded.size(); ++s) facts.stages.at(s).sharded = sharded[s];
  if (facts.num_stages() > facts.num_positions()) {
    facts.round = std::max(facts.num_positions(), facts.has_shards() ? kGatheredRound : 1);
  }
  facts.tail = {kTrainingTail.front()};
  return facts;
}

std::vector<Channel> channels_of(const StepFacts& facts) {
  std::map<std::tuple<ChannelKind, int, int>, int> num_items;
  for (const Message& m : facts.messages) ++num_items[{m.kind, m.from_stage, m.to_stage}];
  std::vector<Channel> channels;
  for (const auto& [path, num] : num_items) {
    const auto& [kind, from, to] = path;
    // What is between two stages is at work on as many microbatches, or on those of a round (`forwards`). A rank does
    // not wait for itself.
    const bool is_one_rank = facts.positions[from] == facts.positions[to];
    const int limit = facts.trains() || is_one_rank ? 0 : num * std::max(to - from, facts.round);
    for (int replica = 0; replica < facts.num_replicas(); ++replica) {
      if (!facts.has_channel(kind, to, replica)) continue;
      channels.push_back(
          {kind, from, to, facts.rank(from, replica), facts.rank(to, replica), limit});
    }
  }
  return channels;
}

namespace {

/// Of the replicas [begin, end).
void add_ranks(const StepFacts& facts, int position, int begin, int end, std::vector<int>& ranks) {
  for (int r = begin; r < end; r += facts.replicas_per_rank(position)) {
    ranks.push_back(facts.rank_at(position, r));
  }
}

}  // namespace

int num_pipelines(const StepFacts& facts) {
  int num = facts.num_replicas();
  for (int p = 0; p < facts.num_positions(); ++p) num = std::gcd(num, facts.num_ranks_at(p));
  return num;
}

std::vector<RankGroup> groups_of(const StepFacts& facts) {
  const int all = facts.num_replicas();
  std::vector<RankGroup> groups = {{GroupKind::kWorld, 0, {}}};
  for (int position = 0; position < facts.num_positions(); ++position) {
    RankGroup group{GroupKind::kData, position, {}};
    add_ranks(facts, position, 0, all, group.ranks);
    groups.front().ranks.insert(groups.front().ranks.end(), group.ranks.begin(), group.ranks.end());
    groups.push_back(std::move(group));
  }
  const int each = all / num_pipelines(facts);
  for (int begin = 0; begin < all; begin += each) {
    RankGroup group{GroupKind::kPipeline, begin / each, {}};
    for (int position = 0; position < facts.num_positions(); ++position) {
      add_ranks(facts, position, begin, begin + each, group.ranks);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

int group_index(const StepFacts& facts, GroupKind kind, int position, int replica) {
  switch (kind) {
    case GroupKind::kWorld:
      return 0;
    case GroupKind::kData:
      return 1 + position;
    case GroupKind::kPipeline:
      return 1 + facts.num_positions() + replica / (facts.num_replicas() / num_pipelines(facts));
  }
  return -1;
}

}  // namespace trireme::schedule
