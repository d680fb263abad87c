#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/action.h"

namespace trireme::schedule {

/// What travels over a channel.
enum class ChannelKind : std::uint8_t {
  kValue,        ///< A crossing value, from its producer to a consumer.
  kGradient,     ///< Its gradient, back along the chain of consumers.
  kTieGradient,  ///< Summed gradient of a use site, from a mirror's stage to the owner's.
  kTieValue,     ///< Updated value of a parameter, from the owner's stage to a mirror's.
};

/// Ordered messages between two stages of one replica, one direction, one kind.
struct Channel {
  ChannelKind kind = ChannelKind::kValue;
  int from_stage = 0;
  int to_stage = 0;
  int from_rank = 0;  ///< World ranks.
  int to_rank = 0;
  bool operator==(const Channel&) const = default;
};

enum class GroupKind : std::uint8_t {
  kWorld,     ///< All ranks of the role.
  kData,      ///< Replicas of one pipeline position, by data index.
  kPipeline,  ///< Pipeline positions of one replica, in order.
};

/// Ranks that run collectives together.
struct Group {
  GroupKind kind = GroupKind::kWorld;
  int index = 0;           ///< Pipeline position of kData, replica of kPipeline, else 0.
  std::vector<int> ranks;  ///< World ranks, in group order.
  bool operator==(const Group&) const = default;
};

/// An operation of a rank. Which fields mean something: in brackets.
enum class OperationKind : std::uint8_t {
  kRecv,     ///< Take the next message of a channel; waits for it. [channel, item, microbatch]
  kCompute,  ///< Run an action. [action]
  kSend,     ///< Post a message; holds its buffer until it is received. [channel, item, microbatch]
  kReduce,   ///< The sum of a bucket over the replicas starts inside the action that follows, as
             ///< soon as the gradients of it and of the buckets before it are complete.
             ///< [group kData, item = bucket]
  kExchange,  ///< All losses and which parameters got a gradient, to all ranks. [group kWorld]
  kJoin,      ///< Wait until a bucket's sum is there. [item = bucket]
  kTieSum,    ///< Add the sites of the parameters that are owned here, in node order.
  kCommit,    ///< Fold buffers' statistics over microbatches and replicas. [group kData]
  kNorm,      ///< Global gradient norm, and clipping by it. [group kPipeline]
  kUpdate,    ///< Optimizer step on the parameters owned here.
  kWeigh,     ///< Weights of the stage's losses, of all replicas' microbatches. [group kData]
};

/// One operation. Text form, with names in place of indices: `recv v17 m3 0>1`, `compute 1F3`,
/// `send g17 m3 1>0`, `reduce bucket 2`, `exchange`, `join bucket 2`, `send site 4 2>0`, ...
struct Operation {
  OperationKind kind = OperationKind::kCompute;
  int channel = -1;     ///< Index into StepProgram::channels.
  int group = -1;       ///< Index into StepProgram::groups.
  int item = -1;        ///< Value id (kValue, kGradient); index in graph::use_sites (kTieGradient);
                        ///< index in Graph::parameters (kTieValue); bucket of the map.
  int microbatch = -1;  ///< Of the replica.
  Action action;
  bool operator==(const Operation&) const = default;
};

/// Everything all ranks do in one training step, in order: what simulator, runtime, checker and
/// watchdog share. Plain data; file form in docs/formats.md.
///
/// A rank's program is kWeigh, if its stage needs the weight of a loss and there are replicas; for
/// each action of its schedule: the recvs that it needs, ordered by (channel, item); the action; its sends,
/// likewise. Before the action that completes the stage's gradients, the last B or W, stand the
/// kReduce of its buckets in order, if there are replicas. Then the tail: exchange; join of each
/// reduced bucket; tie gradients, sends then recvs; tie sum; norm; commit; update; tie values,
/// likewise. Channels are listed by (kind, from_stage, to_stage, replica), only those that carry
/// messages; groups by (kind, index), all of them.
struct StepProgram {
  int num_microbatches = 0;  ///< Per replica.
  std::vector<Channel> channels;
  std::vector<Group> groups;
  std::vector<std::vector<Operation>> ranks;  ///< By world rank.
  bool operator==(const StepProgram&) const = default;
};

struct ProgramOptions {
  bool has_norm = false;  ///< Whether steps have kNorm: they clip, or end at what is not finite.
  bool tolerant = false;  ///< Takes replicas that do not keep the bits of one (`keeps_bits`).
};

/// The step of `plan`, under the schedule that it names.
///
/// planned   the graph with the plan's copies; plan and map are of it and pass their checks.
/// Errors    kInvalidArgument where the schedule is unknown or cannot have these numbers, or the
///           microbatches per lane do not divide among the replicas.
StepProgram make_step_program(const graph::Graph& planned, const layout::Plan& plan,
                              const layout::ParameterMap& map, const ProgramOptions& options);

/// The operation as above; `parse_operation` (operation_text.h) is the inverse. Safe for any
/// indices.
std::string to_text(const StepProgram& program, const Operation& operation);

}  // namespace trireme::schedule
