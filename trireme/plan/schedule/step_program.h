#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/operation.h"

namespace trireme::schedule {

/// Ordered messages between two stages of one replica, one direction, one kind.
struct Channel {
  ChannelKind kind = ChannelKind::kValue;
  int from_stage = 0;
  int to_stage = 0;
  int from_rank = 0;  ///< World ranks.
  int to_rank = 0;
  /// Most messages that are sent and not received; 0: as many as the order of operations makes.
  int limit = 0;
  bool operator==(const Channel&) const = default;
};

/// Ranks that run collectives together.
struct RankGroup {
  GroupKind kind = GroupKind::kWorld;
  int index = 0;           ///< Pipeline position of kData, number of kPipeline, else 0.
  std::vector<int> ranks;  ///< World ranks, in group order.
  bool operator==(const RankGroup&) const = default;
};

/// Everything all ranks do in one training step or one part of an evaluation, in order: what
/// simulator, runtime, checker and watchdog share. Plain data; file form in docs/formats.md.
///
/// A rank's program is kWeigh, if its stage needs the weight of a loss and its position has several ranks; for
/// each action of its schedule, for each of its replicas in turn (actions_of_rank): what whole_stages.h says of sharded values, bucket by bucket; the recvs that it needs,
/// ordered by (channel, item); the action; its sends, likewise; the joins of sharded buckets whose gradients the action
/// before it completed. Before the action that completes the stage's gradients, the last B or W, stand the
/// kReduce of its buckets in order, if its position has several ranks. Then the tail: exchange; join of each
/// reduced bucket that was not joined before; tie gradients, sends then recvs; tie sum; norm; commit; update; gather of
/// each bucket owned here, where state is sharded and its values are not; tie values, likewise. An evaluation has forwards alone, and the exchange. Channels are listed by (kind,
/// from_stage, to_stage, replica), only those that carry messages, of ties for the first replica alone of each rank that
/// takes them; groups by (kind, index), all of them.
struct StepProgram {
  int num_microbatches = 0;  ///< Of the replica that has most.
  std::vector<Channel> channels;
  std::vector<RankGroup> groups;
  std::vector<std::vector<Operation>> ranks;  ///< By world rank.
  bool operator==(const StepProgram&) const = default;
};

struct ProgramOptions {
  bool has_norm = false;  ///< Whether steps have kNorm: they clip, or end at what is not finite.
  bool tolerant = false;  ///< Takes replicas that do not keep the bits of one (`keeps_bits`).
  /// Replicas whose ranks get operations, each once, with the first of those that a rank runs; none: all. The others' have none; channels and groups are all.
  std::vector<int> replicas = {};
};

/// The step of `plan`, under the schedule that it names.
///
/// planned   the graph with the plan's copies; plan and map are of it and pass their checks.
/// Errors    kInvalidArgument where the schedule is unknown or cannot have these numbers, or the
///           microbatches per lane do not divide among the replicas.
StepProgram make_step_program(const graph::Graph& planned, const layout::Plan& plan,
                              const layout::ParameterMap& map, const ProgramOptions& options);

/// What follows the updates of a step, alone: it brings values that owners have changed to all who hold them.
StepProgram make_values_program(const StepProgram& step);

/// By stage, buckets whose values replicas have in shards, ascending; empty where there are none.
using ShardedBuckets = std::vector<std::vector<int>>;

/// Those of a training's plan; map: of it.
ShardedBuckets sharded_by_stage(const layout::Plan& plan, const layout::ParameterMap& map);

/// Forwards of `num_microbatches` microbatches of an evaluation, of all replicas together: replica r
/// has the r-th contiguous part of them, parts differ by one at most. A stage that is k further may be k
/// microbatches behind, or a round of `forwards` where ranks have several stages; channels have that limit.
///
/// planned, plan   of the graph in eval mode; the plan's mesh is that of the training.
/// sharded         of the training's map: what stages have to gather. A round is longer then.
/// Errors          as above, of the mesh.
StepProgram make_evaluation_program(const graph::Graph& planned, const layout::Plan& plan,
                                    int num_microbatches, const ShardedBuckets& sharded = {});

/// The operation as in operation.h; `parse_operation` (operation_text.h) is the inverse. Safe for
/// any indices.
std::string to_text(const StepProgram& program, const Operation& operation);

}  // namespace trireme::schedule
