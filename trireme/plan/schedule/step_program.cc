#include "trireme/plan/schedule/step_program.h"

#include <map>
#include <tuple>

#include "trireme/error.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/schedule/step_facts.h"

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

std::vector<Channel> make_channels(const StepFacts& facts) {
  std::vector<Channel> channels;
  const Message* last = nullptr;
  for (const Message& message : facts.messages) {
    const auto path = [](const Message& m) { return std::tuple(m.kind, m.from_stage, m.to_stage); };
    if (last != nullptr && path(*last) == path(message)) continue;
    for (int replica = 0; replica < facts.num_replicas(); ++replica) {
      channels.push_back({message.kind, message.from_stage, message.to_stage,
                          facts.rank(message.from_stage, replica),
                          facts.rank(message.to_stage, replica)});
    }
    last = &message;
  }
  return channels;
}

std::vector<Group> make_groups(const StepFacts& facts) {
  std::vector<Group> groups = {{GroupKind::kWorld, 0, facts.role.placement}};
  for (int stage = 0; stage < facts.num_stages(); ++stage) {
    Group group{GroupKind::kData, stage, {}};
    for (int r = 0; r < facts.num_replicas(); ++r) group.ranks.push_back(facts.rank(stage, r));
    groups.push_back(std::move(group));
  }
  for (int replica = 0; replica < facts.num_replicas(); ++replica) {
    Group group{GroupKind::kPipeline, replica, {}};
    for (int s = 0; s < facts.num_stages(); ++s) group.ranks.push_back(facts.rank(s, replica));
    groups.push_back(std::move(group));
  }
  return groups;
}

/// Writes the program of the rank that runs `stage` for `replica`.
class RankWriter {
 public:
  RankWriter(const StepFacts& facts, const std::vector<Channel>& channels, int stage, int replica)
      : facts_(facts), stage_(stage) {
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const Channel& channel = channels[c];
      if (channel.from_rank != facts.rank(channel.from_stage, replica)) continue;
      channels_[{channel.kind, channel.from_stage, channel.to_stage}] = static_cast<int>(c);
    }
    data_group_ = 1 + stage;
    pipeline_group_ = 1 + facts.num_stages() + replica;
  }

  std::vector<Operation> write(const std::vector<Action>& actions) {
    if (stage().weighs) write_plain(OperationKind::kWeigh, data_group_);
    for (const Action& action : actions) write_action(action);
    write_tail();
    return std::move(operations_);
  }

 private:
  const StageFacts& stage() const { return facts_.stages[stage_]; }

  void write_action(const Action& action) {
    const ChannelKind kind = carried_by(action.kind);
    const bool carries = carries_messages(action.kind);
    if (carries) write_messages(OperationKind::kRecv, stage().recvs_of(kind), action.microbatch);
    const bool is_last = action.microbatch == facts_.num_microbatches - 1;
    if (is_last && completes_gradients(action.kind)) write_buckets(OperationKind::kReduce);
    operations_.push_back({.kind = OperationKind::kCompute, .action = action});
    if (carries) write_messages(OperationKind::kSend, stage().sends_of(kind), action.microbatch);
  }

  void write_tail() {
    write_plain(OperationKind::kExchange, kWorldGroup);
    write_buckets(OperationKind::kJoin);
    write_ties(ChannelKind::kTieGradient);
    write_plain(OperationKind::kTieSum, -1);
    // First: where a gradient is not finite the step ends here, and buffers stay as they were.
    if (facts_.has_norm) write_plain(OperationKind::kNorm, pipeline_group_);
    write_plain(OperationKind::kCommit, data_group_);
    write_plain(OperationKind::kUpdate, -1);
    write_ties(ChannelKind::kTieValue);
  }

  /// Sends go first: two stages may own each other's mirrors, and only recvs wait.
  void write_ties(ChannelKind kind) {
    write_messages(OperationKind::kSend, stage().sends_of(kind), -1);
    write_messages(OperationKind::kRecv, stage().recvs_of(kind), -1);
  }

  void write_messages(OperationKind kind, const std::vector<Message>& messages, int microbatch) {
    for (const Message& message : messages) {
      const int channel = channels_.at({message.kind, message.from_stage, message.to_stage});
      operations_.push_back(
          {.kind = kind, .channel = channel, .item = message.item, .microbatch = microbatch});
    }
  }

  void write_buckets(OperationKind kind) {
    if (facts_.num_replicas() == 1) return;
    const int group = kind == OperationKind::kReduce ? data_group_ : -1;
    for (const int bucket : stage().buckets) {
      operations_.push_back({.kind = kind, .group = group, .item = bucket});
    }
  }

  void write_plain(OperationKind kind, int group) {
    operations_.push_back({.kind = kind, .group = group});
  }

  static constexpr int kWorldGroup = 0;

  const StepFacts& facts_;
  int stage_;
  int data_group_ = 0;
  int pipeline_group_ = 0;
  std::map<std::tuple<ChannelKind, int, int>, int> channels_;
  std::vector<Operation> operations_;
};

}  // namespace

StepProgram make_step_program(const graph::Graph& planned, const layout::Plan& plan,
                              const layout::ParameterMap& map, const ProgramOptions& options) {
  const StepFacts facts = step_facts(planned, plan, map, options);
  const Schedule schedule =
      make_schedule(plan.schedule, facts.num_stages(), facts.num_microbatches);
  StepProgram program{facts.num_microbatches, make_channels(facts), make_groups(facts), {}};
  program.ranks.resize(facts.num_ranks);
  for (int stage = 0; stage < facts.num_stages(); ++stage) {
    for (int replica = 0; replica < facts.num_replicas(); ++replica) {
      RankWriter writer(facts, program.channels, stage, replica);
      program.ranks[facts.rank(stage, replica)] = writer.write(schedule.ranks[stage]);
    }
  }
  return program;
}

}  // namespace trireme::schedule
