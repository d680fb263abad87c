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
// and rank 1 does the other halves. Replicas have the same program over other channels and groups.

namespace trireme::schedule {
namespace {

/// Writes the program of the rank at a position of the pipeline of `replica`.
class RankWriter {
 public:
  RankWriter(const StepFacts& facts, const StepProgram& program, int position, int replica)
      : facts_(facts), stages_(facts.stages_at(position)), replica_(replica) {
    const auto num_replicas = static_cast<std::size_t>(facts.num_replicas());
    for (std::size_t c = replica; c < program.channels.size(); c += num_replicas) {
      const Channel& channel = program.channels[c];
      channels_[{channel.kind, channel.from_stage, channel.to_stage}] = static_cast<int>(c);
    }
    for (const GroupKind kind : {GroupKind::kWorld, GroupKind::kData, GroupKind::kPipeline}) {
      groups_[kind] = group_index(facts, kind, position, replica);
    }
  }

  std::vector<Operation> write(const std::vector<Action>& actions) {
    if (std::ranges::any_of(stages_, [&](int s) { return facts_.stages[s].weighs; })) {
      write_plain(OperationKind::kWeigh);
    }
    const std::vector<Action> own = of_replica(actions);
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
  std::vector<Action> of_replica(const std::vector<Action>& actions) const {
    std::vector<Action> own;
    std::ranges::copy_if(actions, std::back_inserter(own),
                         [&](const Action& action) { return is_own(action); });
    return own;
  }

  bool is_own(const Action& action) const {
    return action.microbatch < facts_.num_microbatches_of(replica_);
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
    const bool is_last = action.microbatch == facts_.num_microbatches - 1;
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
    for (const int s : stages_) {
      write_messages(OperationKind::kSend, facts_.stages[s].sends_of(kind), -1);
    }
    for (const int s : stages_) {
      write_messages(OperationKind::kRecv, facts_.stages[s].recvs_of(kind), -1);
    }
  }

  void write_messages(OperationKind kind, const std::vector<Message>& messages, int microbatch) {
    for (const Message& message : messages) {
      const int channel = channels_.at({message.kind, message.from_stage, message.to_stage});
      operations_.push_back(
          {.kind = kind, .channel = channel, .item = message.item, .microbatch = microbatch});
    }
  }

  void write_buckets(OperationKind kind, int stage) {
    if (facts_.num_replicas() == 1) return;
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
  std::vector<int> stages_;  ///< Of the rank, ascending.
  int replica_;
  std::map<std::tuple<ChannelKind, int, int>, int> channels_;
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
  for (const int replica : replicas.empty() ? all : replicas) {
    for (int position = 0; position < facts.num_positions(); ++position) {
      RankWriter writer(facts, program, position, replica);
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
