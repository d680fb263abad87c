#include "trireme/plan/schedule/step_program.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "trireme/error.h"
#include "trireme/plan/schedule/offload.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/schedule/step_facts.h"
#include "trireme/plan/schedule/whole_stages.h"

// A rank's program is written from front to back. Rank 0 of two stages on two ranks, two
// microbatches, schedule `simple`, one value v3 between the stages:
//
//     compute 0F0 | send v3 m0 0>1 | compute 0F1 | send v3 m1 0>1
//     recv g3 m0 1>0 | compute 0B0 | recv g3 m1 1>0 | compute 0B1
//     exchange | tie sum | commit | update
//
// and rank 1 does the other halves. Replicas have the same program over other channels and groups. A rank that runs several
// replicas does each action for one after the other, and what follows the actions once.

namespace trireme::schedule {
namespace {

/// By kind, stages and replica.
using ChannelIndices = std::map<std::tuple<ChannelKind, int, int, int>, int>;

/// Of the channels as channels_of lists them.
ChannelIndices channel_indices(const StepFacts& facts, const std::vector<Channel>& channels) {
  ChannelIndices indices;
  int replica = 0;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const Channel& channel = channels[c];
    const bool goes_on = c > 0 && channel.kind == channels[c - 1].kind &&
                         channel.from_stage == channels[c - 1].from_stage &&
                         channel.to_stage == channels[c - 1].to_stage;
    replica = goes_on ? replica + 1 : 0;
    while (!facts.has_channel(channel.kind, channel.to_stage, replica)) ++replica;
    indices[{channel.kind, channel.from_stage, channel.to_stage, replica}] = static_cast<int>(c);
  }
  return indices;
}

/// Writes the program of the rank at a position of the pipeline whose first replica is `replica`.
class RankWriter {
 public:
  RankWriter(const StepFacts& facts, const ChannelIndices& channels, int position, int replica)
      : facts_(facts),
        channels_(channels),
        stages_(facts.stages_at(position)),
        replica_(replica),
        num_replicas_(facts.replicas_per_rank(position)),
        num_ranks_(facts.num_ranks_at(position)) {
    for (const GroupKind kind : {GroupKind::kWorld, GroupKind::kData, GroupKind::kPipeline}) {
      groups_[kind] = group_index(facts, kind, position, replica);
    }
  }

  /// actions   of the position.
  std::vector<Operation> write(const std::vector<Action>& of_replica) {
    const std::vector<Action> actions =
        actions_of_rank(of_replica, num_replicas_, facts_.num_microbatches);
    if (std::ranges::any_of(stages_, [&](int s) { return facts_.stages[s].weighs; })) {
      write_plain(OperationKind::kWeigh);
    }
    const std::vector<Action> own = present(actions);
    add_offloads(own);
    // Of all replicas alike, also where one has fewer microbatches.
    const std::vector<ValueMoves> moves = value_moves(actions);
    int place = 0;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      write_moves(moves[i]);
      if (is_own(actions[i])) write_action(own, place++);
    }
    write_moves(moves.back());
    for (const TailPart& part : facts_.tail) write_tail(part);
    return std::move(operations_);
  }

 private:
  std::vector<Action> present(const std::vector<Action>& actions) const {
    std::vector<Action> own;
    std::ranges::copy_if(actions, std::back_inserter(own),
                         [&](const Action& action) { return is_own(action); });
    return own;
  }

  /// Which of all replicas a microbatch of the rank is of.
  int replica_of(int microbatch) const { return replica_ + microbatch / facts_.num_microbatches; }

  bool is_own(const Action& action) const {
    return action.microbatch % facts_.num_microbatches <
           facts_.num_microbatches_of(replica_of(action.microbatch));
  }

  void write_moves(const ValueMoves& moves) {
    for (const int stage : moves.reshard) write_sharded(OperationKind::kReshard, stage);
    for (const int stage : moves.unshard) write_sharded(OperationKind::kUnshard, stage);
    for (const int stage : moves.await) write_sharded(OperationKind::kAwait, stage);
  }

  void write_sharded(OperationKind kind, int stage) {
    for (const int bucket : facts_.stages[stage].sharded) {
      operations_.push_back({.kind = kind, .group = group_of(kind), .item = bucket});
      if (kind == OperationKind::kJoin) joined_.insert(bucket);
    }
  }

  void add_offloads(const std::vector<Action>& actions) {
    std::vector<bool> offloads;
    for (const StageFacts& stage : facts_.stages) offloads.push_back(stage.offloads);
    for (const OffloadedMicrobatch& offload : find_offloads(actions, offloads)) {
      offloaded_.insert(offload.forward);
      fetched_.insert(offload.backward);
      prefetched_[offload.prefetch] = offload.backward;
    }
  }

  void write_action(const std::vector<Action>& actions, int place) {
    const Action& action = actions[place];
    const StageFacts& stage = facts_.stages[action.stage];
    if (const auto later = prefetched_.find(place); later != prefetched_.end()) {
      operations_.push_back({.kind = OperationKind::kPrefetch, .action = actions[later->second]});
    }
    const ChannelKind kind = carried_by(action.kind);
    const bool carries = carries_messages(action.kind);
    if (carries) write_messages(OperationKind::kRecv, stage.recvs_of(kind), action.microbatch);
    if (fetched_.contains(place)) {
      operations_.push_back({.kind = OperationKind::kFetch, .action = action});
    }
    const bool is_last = action.microbatch == num_replicas_ * facts_.num_microbatches - 1;
    if (is_last && completes_gradients(action.kind)) {
      write_buckets(OperationKind::kReduce, action.stage);
    }
    operations_.push_back({.kind = OperationKind::kCompute, .action = action});
    if (carries) write_messages(OperationKind::kSend, stage.sends_of(kind), action.microbatch);
    if (offloaded_.contains(place)) {
      operations_.push_back({.kind = OperationKind::kOffload, .action = action});
    }
    // The sum goes on beside one more action.
    if (completed_ >= 0) write_sharded(OperationKind::kJoin, completed_);
    completed_ = is_last && completes_gradients(action.kind) ? action.stage : -1;
  }

  void write_tail(const TailPart& part) {
    if (part.ties) return write_ties(*part.ties);
    const OperationKind kind = part.kind.value();
    if (row_of(kind).operand != OperandKind::kBucket) return write_plain(kind);
    for (const int stage : stages_) write_buckets(kind, stage);
  }

  /// Sends go first: two stages may own each other's mirrors, and only recvs wait.
  void write_ties(ChannelKind kind) {
    for (const int s : stages_) write_ties(OperationKind::kSend, facts_.stages[s].sends_of(kind));
    for (const int s : stages_) write_ties(OperationKind::kRecv, facts_.stages[s].recvs_of(kind));
  }

  /// Each message for all replicas in which it has a channel that ends here.
  void write_ties(OperationKind kind, const std::vector<Message>& messages) {
    for (const Message& message : messages) {
      for (int r = replica_; r < replica_ + num_replicas_; ++r) {
        if (!facts_.has_channel(message.kind, message.to_stage, r)) continue;
        write_message(kind, message, r, -1);
      }
    }
  }

  void write_messages(OperationKind kind, const std::vector<Message>& messages, int microbatch) {
    for (const Message& message : messages) {
      write_message(kind, message, replica_of(microbatch), microbatch);
    }
  }

  void write_message(OperationKind kind, const Message& message, int replica, int microbatch) {
    const int channel = channels_.at({message.kind, message.from_stage, message.to_stage, replica});
    operations_.push_back(
        {.kind = kind, .channel = channel, .item = message.item, .microbatch = microbatch});
  }

  void write_buckets(OperationKind kind, int stage) {
    if (num_ranks_ == 1) return;
    for (const int bucket : facts_.stages[stage].buckets_of(kind)) {
      if (kind == OperationKind::kJoin && joined_.contains(bucket)) continue;
      operations_.push_back({.kind = kind, .group = group_of(kind), .item = bucket});
    }
  }

  void write_plain(OperationKind kind) {
    operations_.push_back({.kind = kind, .group = group_of(kind)});
  }

  int group_of(OperationKind kind) const {
    const auto& group = row_of(kind).group;
    return group ? groups_.at(*group) : -1;
  }

  const StepFacts& facts_;
  const ChannelIndices& channels_;
  std::vector<int> stages_;  ///< Of the rank, ascending.
  int replica_;              ///< The first of the rank's.
  int num_replicas_;         ///< Of the rank.
  int num_ranks_;            ///< At its position.
  std::map<GroupKind, int> groups_;
  std::set<int> offloaded_, fetched_;  ///< Places of actions.
  std::map<int, int> prefetched_;      ///< Place before which, of the backward.
  int completed_ = -1;                 ///< Stage whose gradients the action before completed.
  std::set<int> joined_;               ///< Buckets, before the tail.
  std::vector<Operation> operations_;
};

/// replicas   whose ranks get operations; empty: all.
StepProgram write_program(const StepFacts& facts, const Schedule& schedule,
                          const std::vector<int>& replicas = {}) {
  StepProgram program{facts.num_microbatches, channels_of(facts), groups_of(facts), {}};
  program.ranks.resize(facts.num_ranks);
  std::vector<int> all(facts.num_replicas());
  std::iota(all.begin(), all.end(), 0);
  const ChannelIndices channels = channel_indices(facts, program.channels);
  for (const int replica : replicas.empty() ? all : replicas) {
    for (int position = 0; position < facts.num_positions(); ++position) {
      if (!facts.is_first(position, replica)) continue;
      RankWriter writer(facts, channels, position, replica);
      program.ranks[facts.rank_at(position, replica)] = writer.write(schedule.ranks[position]);
    }
  }
  return program;
}

}  // namespace

StepProgram make_step_program(const graph::Graph& planned, const layout::Plan& plan,
                              const layout::ParameterMap& map, const ProgramOptions& options) {
  const StepFacts facts = step_facts(planned, plan, map, options);
  return write_program(facts, schedule_of(plan), options.replicas);
}

StepProgram make_values_program(const StepProgram& step) {
  StepProgram program{step.num_microbatches, step.channels, step.groups, {}};
  for (const std::vector<Operation>& operations : step.ranks) {
    const auto update = std::ranges::find(operations, OperationKind::kUpdate, &Operation::kind);
    const auto begin = update == operations.end() ? update : update + 1;
    program.ranks.emplace_back(begin, operations.end());
  }
  return program;
}

StepProgram make_evaluation_program(const graph::Graph& planned, const layout::Plan& plan,
                                    int num_microbatches, const ShardedBuckets& sharded) {
  const StepFacts facts = evaluation_facts(planned, plan, num_microbatches, sharded);
  return write_program(facts, forwards(facts.positions, facts.num_microbatches, facts.round));
}

}  // namespace trireme::schedule
