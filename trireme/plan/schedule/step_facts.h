#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/step_program.h"

namespace trireme::schedule {

/// Something that travels between two stages in every step: once per replica and, where it is a
/// value or a gradient, once per microbatch.
struct Message {
  ChannelKind kind = ChannelKind::kValue;
  int from_stage = 0;
  int to_stage = 0;
  int item = 0;  ///< As in Operation.
  auto operator<=>(const Message&) const = default;
};

/// What a stage has to do beside its actions. Stages of one rank send each other values and gradients as others do;
/// what they share of a parameter is one memory.
struct StageFacts {
  std::array<std::vector<Message>, kNumChannelKinds> sends;  ///< By ChannelKind, each ascending.
  std::array<std::vector<Message>, kNumChannelKinds> recvs;
  std::vector<int> buckets;  ///< Of the map, ascending.
  std::vector<int> owned;    ///< Those with values that are updated here, and whole.
  std::vector<int> sharded;  ///< Those with values that replicas have in shards (whole_stages.h).
  bool weighs = false;       ///< It needs weights of losses, and other ranks have some of them.
  bool offloads = false;     ///< What its microbatches keep goes to a file (offload.h).

  /// Those that operations of `kind` are about.
  const std::vector<int>& buckets_of(OperationKind kind) const {
    return kind == OperationKind::kGather ? owned : buckets;
  }

  const std::vector<Message>& sends_of(ChannelKind kind) const {
    return sends[static_cast<std::size_t>(kind)];
  }
  const std::vector<Message>& recvs_of(ChannelKind kind) const {
    return recvs[static_cast<std::size_t>(kind)];
  }
};

/// A part of what follows a rank's actions.
struct TailPart {
  std::string_view name;
  std::optional<OperationKind> kind;  ///< Once, or for each bucket.
  std::optional<ChannelKind> ties;    ///< In place of a kind: sends, then recvs, of such messages.
};

/// What graph, plan and map say about a step, in the form that generator and checker need.
struct StepFacts {
  layout::Role role;              ///< The one that trains.
  std::vector<int> positions;     ///< By stage: in the pipeline.
  std::vector<int> per_rank;      ///< By position: replicas of each rank.
  int num_ranks = 0;              ///< Of the world: all roles.
  int num_microbatches = 0;       ///< Of the replica that has most.
  std::vector<Message> messages;  ///< Ascending.
  std::vector<StageFacts> stages;
  std::vector<TailPart> tail;  ///< In order.
  bool has_norm = false;
  bool has_gathers = false;  ///< Replicas update parts, and gather the values.
  /// Microbatches that a stage of an evaluation runs before the rank's next stage.
  int round = 1;
  /// Microbatches of all replicas of an evaluation; nothing where the step trains.
  std::optional<int> num_evaluated;

  bool trains() const { return !num_evaluated; }
  bool has_shards() const;  ///< Some stage has sharded values.

  int num_stages() const { return static_cast<int>(stages.size()); }
  int num_positions() const { return role.mesh.pipeline; }
  int num_replicas() const { return role.mesh.data; }
  /// World rank at a position of the pipeline of `replica`.
  int rank_at(int position, int replica) const {
    return role.placement[position * num_replicas() + replica];
  }
  /// World rank that runs `stage` for `replica`.
  int rank(int stage, int replica) const { return rank_at(positions[stage], replica); }
  /// Replicas that each rank at a position runs, neighbours; and how many ranks there are.
  int replicas_per_rank(int position) const { return per_rank[position]; }
  int num_ranks_at(int position) const { return num_replicas() / per_rank[position]; }
  /// Whether `replica` is the first that its rank at the position runs.
  bool is_first(int position, int replica) const { return replica % per_rank[position] == 0; }
  /// Whether a message has a channel of its own in `replica`: one of a tie goes once to each rank that takes it.
  bool has_channel(ChannelKind kind, int to_stage, int replica) const {
    return has_microbatch(kind) || is_first(positions[to_stage], replica);
  }
  /// The stages at a position, ascending.
  std::vector<int> stages_at(int position) const;
  /// Microbatches of `replica`.
  int num_microbatches_of(int replica) const;
};

/// A rank's part of the schedule: each action of its position for one of its replicas after the other. The rank numbers its
/// microbatches through, those of its first replica first, and then on:
///
///     0F0 0F1 0B0 0B1    two microbatches, for two replicas:    0F0 0F2 0F1 0F3 0B0 0B2 0B1 0B3
///
/// num_microbatches   of a replica.
std::vector<Action> actions_of_rank(const std::vector<Action>& actions, int num_replicas,
                                    int num_microbatches);

/// First microbatch of `replica`'s part of an evaluation of `num_microbatches`.
int first_of_part(int num_microbatches, int num_replicas, int replica);

/// What an action of `kind` waits for and gives: values with a forward, gradients with a backward
/// or its input part. False where it does neither: W.
bool carries_messages(ActionKind kind);
ChannelKind carried_by(ActionKind kind);

/// Whether an action of `kind` completes a microbatch's gradients of parameters: B or W.
bool completes_gradients(ActionKind kind);

/// Whether that many replicas give the bits of one: each has lanes that are one subtree of the fold
/// over lanes (docs/concepts/equality.md).
bool keeps_bits(const BatchLayout& batch, std::int64_t replicas);

/// planned, plan, map   as for make_step_program.
/// Errors   kInvalidArgument where one program cannot serve the plan: a sharded mesh, ranks that are not 0 to n - 1, ranks whose lanes are no
///          subtree of the fold, unless that is tolerated; shards where ranks run several replicas.
StepFacts step_facts(const graph::Graph& planned, const layout::Plan& plan,
                     const layout::ParameterMap& map, const ProgramOptions& options);

/// As for make_evaluation_program.
StepFacts evaluation_facts(const graph::Graph& planned, const layout::Plan& plan,
                           int num_microbatches, const ShardedBuckets& sharded = {});

/// The channels and groups of a step, as StepProgram lists them.
std::vector<Channel> channels_of(const StepFacts& facts);
std::vector<RankGroup> groups_of(const StepFacts& facts);

/// Pipelines that share no rank: each has all ranks of as many neighbouring replicas. One for each replica where each has
/// ranks of its own.
int num_pipelines(const StepFacts& facts);

/// Which of `groups_of` the rank at a position of `replica` belongs to.
int group_index(const StepFacts& facts, GroupKind kind, int position, int replica);

}  // namespace trireme::schedule
