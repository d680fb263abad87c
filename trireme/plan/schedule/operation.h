#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "trireme/plan/schedule/action.h"

namespace trireme::schedule {

/// What travels over a channel.
enum class ChannelKind : std::uint8_t {
  kValue,        ///< A crossing value, from its producer to a consumer.
  kGradient,     ///< Its gradient, back along the chain of consumers.
  kTieGradient,  ///< Summed gradient of a use site, from a mirror's stage to the owner's.
  kTieValue,     ///< Updated value of a parameter, from the owner's stage to a mirror's.
};

inline constexpr std::size_t kNumChannelKinds = 4;

/// Names of kinds, and what stands before an item in an operation's text; indexed by them.
inline constexpr std::array<std::string_view, kNumChannelKinds> kChannelKindNames = {
    "value", "gradient", "tie_gradient", "tie_value"};
inline constexpr std::array<std::string_view, kNumChannelKinds> kItemPrefixes = {"v", "g", "site ",
                                                                                 "parameter "};

/// Whether each microbatch has its messages; those of ties come once a step.
constexpr bool has_microbatch(ChannelKind kind) {
  return kind == ChannelKind::kValue || kind == ChannelKind::kGradient;
}

enum class GroupKind : std::uint8_t {
  kWorld,     ///< All ranks of the role.
  kData,      ///< Ranks of one pipeline position, in the order of their replicas.
  kPipeline,  ///< All ranks of one replica, or of neighbours that share some, by pipeline position.
};

inline constexpr std::array<std::string_view, 3> kGroupKindNames = {"world", "data", "pipeline"};

enum class OperationKind : std::uint8_t {
  kRecv,      ///< Take the next message of a channel.
  kCompute,   ///< Run an action.
  kSend,      ///< Post a message; holds its buffer until it is received.
  kReduce,    ///< The sum of a bucket over the replicas starts inside the action that follows, as
              ///< soon as the gradients of it and of the buckets before it are complete.
  kExchange,  ///< All losses, in a training which parameters got a gradient, to all ranks.
  kJoin,      ///< Wait until a bucket's sum is there.
  kTieSum,    ///< Add the sites of the parameters that are owned here, in node order.
  kCommit,    ///< Fold buffers' statistics over microbatches and replicas.
  kNorm,      ///< Global gradient norm, and clipping by it.
  kUpdate,    ///< Optimizer step on the parameters owned here.
  kGather,    ///< The values of a bucket, each part from the replica that has updated it.
  kWeigh,     ///< Weights of the stage's losses, of all replicas' microbatches.
  kOffload,   ///< What the action, a forward, keeps for its backward goes to a file.
  kPrefetch,  ///< The system is asked to have it in memory soon; the action is a backward.
  kFetch,     ///< It is read again.
  kUnshard,   ///< The values of a bucket of which replicas have shards: memory for the whole, and a
              ///< gather that starts.
  kAwait,     ///< Wait until they are whole.
  kReshard,   ///< The memory of all but the own shard is given back.
};

/// What an operation is about: which fields of Operation mean something beside kind and group.
enum class OperandKind : std::uint8_t {
  kNothing,
  kAction,   ///< action: that is run, or whose microbatch it is about
  kMessage,  ///< channel, item, and microbatch where the channel's kind has one
  kBucket,   ///< item: of the map
};

/// What a rank waits for in an operation, once its own work is done.
enum class Wait : std::uint8_t {
  kNothing,
  kMessage,  ///< That it takes.
  kRoom,     ///< Until fewer messages of its channel than the channel's limit are not received.
  kGroup,    ///< Until all ranks of the group have come.
  kSum,      ///< Until all ranks of the group have started the bucket's sum, and it is made.
  kValues,   ///< Until all have started the gather of the bucket's values, and they are there.
};

/// What a rank's processor does in an operation.
enum class ProcessorWork : std::uint8_t {
  kNothing,
  kAction,
  kCopy,      ///< Of a message.
  kFold,      ///< Of elements that are owned here, once.
  kFoldTies,  ///< Of the further sites of what is owned here.
  kUpdate,    ///< Of elements that are owned here, by the optimizer.
  kWrite,     ///< To a file, of what a microbatch keeps.
  kRead,      ///< From it.
};

/// What goes over links in an operation.
enum class Traffic : std::uint8_t { kNothing, kMessage, kBucket, kValues, kFewBytes };

/// What is known of a kind of operation: text and file form, groups, waits and prices go by it. A
/// kind is added here, and where it is written (step_facts.cc or step_program.cc), checked
/// (rank_rules.cc) and run (engine/train/rank_operations.cc). What a recv, a send and a reduction
/// do to others is theirs alone (rendezvous.cc, simulate.cc).
struct OperationRow {
  OperationKind kind;
  std::string_view word;  ///< Its text begins with it; no word is the beginning of another.
  OperandKind operand = OperandKind::kNothing;
  std::optional<GroupKind> group =
      std::nullopt;  ///< Whose ranks run it together, in the same order.
  Wait wait = Wait::kNothing;
  ProcessorWork work = ProcessorWork::kNothing;
  Traffic traffic = Traffic::kNothing;
};

inline constexpr std::array<OperationRow, 18> kOperations = {{
    {.kind = OperationKind::kRecv,
     .word = "recv",
     .operand = OperandKind::kMessage,
     .wait = Wait::kMessage},
    {.kind = OperationKind::kCompute,
     .word = "compute",
     .operand = OperandKind::kAction,
     .work = ProcessorWork::kAction},
    {.kind = OperationKind::kSend,
     .word = "send",
     .operand = OperandKind::kMessage,
     .wait = Wait::kRoom,
     .work = ProcessorWork::kCopy,
     .traffic = Traffic::kMessage},
    {.kind = OperationKind::kReduce,
     .word = "reduce",
     .operand = OperandKind::kBucket,
     .group = GroupKind::kData,
     .traffic = Traffic::kBucket},
    {.kind = OperationKind::kExchange,
     .word = "exchange",
     .group = GroupKind::kWorld,
     .wait = Wait::kGroup,
     .traffic = Traffic::kFewBytes},
    {.kind = OperationKind::kJoin,
     .word = "join",
     .operand = OperandKind::kBucket,
     .wait = Wait::kSum},
    {.kind = OperationKind::kTieSum, .word = "tie sum", .work = ProcessorWork::kFoldTies},
    {.kind = OperationKind::kCommit,
     .word = "commit",
     .group = GroupKind::kData,
     .wait = Wait::kGroup,
     .traffic = Traffic::kFewBytes},
    {.kind = OperationKind::kNorm,
     .word = "norm",
     .group = GroupKind::kPipeline,
     .wait = Wait::kGroup,
     .work = ProcessorWork::kFold,
     .traffic = Traffic::kFewBytes},
    {.kind = OperationKind::kUpdate, .word = "update", .work = ProcessorWork::kUpdate},
    {.kind = OperationKind::kGather,
     .word = "gather",
     .operand = OperandKind::kBucket,
     .group = GroupKind::kData,
     .wait = Wait::kGroup,
     .traffic = Traffic::kValues},
    {.kind = OperationKind::kWeigh,
     .word = "weigh",
     .group = GroupKind::kData,
     .wait = Wait::kGroup,
     .traffic = Traffic::kFewBytes},
    {.kind = OperationKind::kOffload,
     .word = "offload",
     .operand = OperandKind::kAction,
     .work = ProcessorWork::kWrite},
    {.kind = OperationKind::kPrefetch, .word = "prefetch", .operand = OperandKind::kAction},
    {.kind = OperationKind::kFetch,
     .word = "fetch",
     .operand = OperandKind::kAction,
     .work = ProcessorWork::kRead},
    {.kind = OperationKind::kUnshard,
     .word = "unshard",
     .operand = OperandKind::kBucket,
     .group = GroupKind::kData,
     .traffic = Traffic::kValues},
    {.kind = OperationKind::kAwait,
     .word = "await",
     .operand = OperandKind::kBucket,
     .wait = Wait::kValues},
    {.kind = OperationKind::kReshard, .word = "reshard", .operand = OperandKind::kBucket},
}};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kOperations.size(); ++i) {
    if (kOperations[i].kind != static_cast<OperationKind>(i)) return false;
  }
  return true;
}
static_assert(is_in_order(), "kOperations is indexed by OperationKind");

constexpr const OperationRow& row_of(OperationKind kind) {
  return kOperations[static_cast<std::size_t>(kind)];
}

/// One operation of a rank. Text form, with names in place of indices: `recv v17 m3 0>1`,
/// `compute 1F3`, `offload 1F3`, `send g17 m3 1>0`, `reduce bucket 2`, `exchange`, `send site 4 2>0`,
/// `unshard bucket 3`, ...
struct Operation {
  OperationKind kind = OperationKind::kCompute;
  int channel = -1;     ///< Index into StepProgram::channels.
  int group = -1;       ///< Index into StepProgram::groups.
  int item = -1;        ///< Value id (kValue, kGradient); index in graph::use_sites (kTieGradient);
                        ///< index in Graph::parameters (kTieValue); bucket of the map.
  int microbatch = -1;  ///< Of the rank, as in actions_of_rank.
  Action action;
  bool operator==(const Operation&) const = default;
};

}  // namespace trireme::schedule
