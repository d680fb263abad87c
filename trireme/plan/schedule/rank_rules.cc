#include "trireme/plan/schedule/rank_rules.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/schedule/offload.h"

namespace trireme::schedule::internal {

RankRules::RankRules(const ProgramIndex& index, const StepFacts& facts, int position, int replica)
    : index_(index),
      facts_(facts),
      replica_(replica),
      num_replicas_(static_cast<int>(std::count(
          facts.role.placement.begin() + std::ptrdiff_t{position} * facts.role.mesh.data,
          facts.role.placement.begin() + (std::ptrdiff_t{position} + 1) * facts.role.mesh.data,
          facts.role.placement[position * facts.role.mesh.data + replica]))),
      num_ranks_(facts.role.mesh.data / num_replicas_),
      rank_(facts.role.placement[position * facts.role.mesh.data + replica]) {
  for (std::size_t s = 0; s < facts.stages.size(); ++s) {
    if (facts.positions[s] == position) stages_.push_back(&facts.stages[s]);
  }
}

/// Worked out here once more: action by action, replica by replica.
int RankRules::replica_of(int microbatch) const {
  return replica_ + microbatch / facts_.num_microbatches;
}

bool RankRules::is_there(const Action& action) const {
  return action.microbatch % facts_.num_microbatches <
         facts_.num_microbatches_of(replica_of(action.microbatch));
}

void RankRules::check(const std::vector<Action>& of_position) {
  std::vector<Action> actions;
  for (const Action& action : of_position) {
    for (int r = 0; r < num_replicas_; ++r) {
      actions.push_back(
          {action.kind, action.stage, action.microbatch + r * facts_.num_microbatches});
    }
  }
  rule_ = "weights of losses come first, where a stage needs them and there are replicas";
  bool weighs = false;
  for (const StageFacts* stage : stages_) weighs = weighs || stage->weighs;
  if (weighs) check_plain(OperationKind::kWeigh);
  std::vector<Action> own;
  for (const Action& action : actions) {
    if (is_there(action)) own.push_back(action);
  }
  const std::vector<int> partners = offload_partners(own);
  int place = 0;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    check_values(actions, i);
    if (!is_there(actions[i])) continue;
    check_action(own, partners, place++);
    check_early_joins(actions[i]);
  }
  check_values(actions, actions.size());
  check_tail();
  rule_ = "nothing follows the tail";
  if (cursor_ < operations().size()) fail("the end");
}

/// Worked out here once more, from what stands behind an action: its stage has whole values, and the next other one has
/// them on their way; no third.
void RankRules::check_values(const std::vector<Action>& actions, std::size_t place) {
  rule_ =
      "the values of an action's stage are whole, those of the rank's next stage on their way, and "
      "all others in shards";
  std::vector<int> wanted;
  for (std::size_t i = place; i < actions.size() && wanted.size() < 2; ++i) {
    if (wanted.empty() || wanted.front() != actions[i].stage) wanted.push_back(actions[i].stage);
  }
  std::vector<int> kept, dropped;
  for (const int stage : order_) {
    (std::ranges::count(wanted, stage) != 0 ? kept : dropped).push_back(stage);
  }
  for (const int stage : dropped) {
    check_values_of(OperationKind::kReshard, stage);
    held_.erase(stage);
  }
  order_ = kept;
  for (const int stage : wanted) {
    if (!held_.try_emplace(stage, false).second) continue;
    check_values_of(OperationKind::kUnshard, stage);
    order_.push_back(stage);
  }
  if (wanted.empty() || held_.at(wanted.front())) return;
  check_values_of(OperationKind::kAwait, wanted.front());
  held_.at(wanted.front()) = true;
}

void RankRules::check_values_of(OperationKind kind, int stage) {
  for (const int bucket : facts_.stages[stage].sharded) {
    expect({.kind = kind, .group = group_of(kind), .item = bucket});
  }
}

void RankRules::check_early_joins(const Action& action) {
  rule_ = "sums of sharded buckets are joined one action after the one that completes them";
  if (completed_ >= 0) {
    check_values_of(OperationKind::kJoin, completed_);
    const std::vector<int>& sharded = facts_.stages[completed_].sharded;
    joined_.insert(sharded.begin(), sharded.end());
  }
  const bool is_last = action.microbatch == num_replicas_ * facts_.num_microbatches - 1;
  completed_ = is_last && completes_gradients(action.kind) ? action.stage : -1;
}

/// By place of an offloaded forward the place of its backward, and the other way round; -1 for others.
std::vector<int> RankRules::offload_partners(const std::vector<Action>& actions) const {
  std::vector<int> partners(actions.size(), -1);
  std::map<std::pair<int, int>, int> open;  // Forwards by stage and microbatch.
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    const Action& action = actions[i];
    if (!facts_.stages[action.stage].offloads || !carries_messages(action.kind)) continue;
    const auto [forward, is_forward] = open.try_emplace({action.stage, action.microbatch}, i);
    if (is_forward || i - forward->second <= kPrefetchedAhead) continue;
    partners[i] = forward->second;
    partners[forward->second] = i;
  }
  return partners;
}

void RankRules::check_prefetch(const std::vector<Action>& actions, const std::vector<int>& partners,
                               int place) {
  const int backward = place + kPrefetchedAhead;
  if (backward >= static_cast<int>(actions.size())) return;
  if (partners[backward] < 0 || partners[backward] > backward) return;  // None, or a forward.
  rule_ = "what is in a file is asked for two actions before its backward";
  expect({.kind = OperationKind::kPrefetch, .action = actions[backward]});
}

void RankRules::check_action(const std::vector<Action>& actions, const std::vector<int>& partners,
                             int place) {
  const Action& action = actions[place];
  check_prefetch(actions, partners, place);
  const StageFacts& stage = facts_.stages[action.stage];
  const ChannelKind kind = carried_by(action.kind);
  const bool carries = carries_messages(action.kind);
  rule_ = "before an action stand the recvs that it needs, by channel and item";
  if (carries) check_messages(OperationKind::kRecv, stage.recvs_of(kind), action.microbatch);
  rule_ = "what was offloaded is fetched before its backward";
  if (partners[place] >= 0 && partners[place] < place) {
    expect({.kind = OperationKind::kFetch, .action = action});
  }
  rule_ = "before the action that completes the gradients stands the reduction of each bucket";
  const bool is_last = action.microbatch == num_replicas_ * facts_.num_microbatches - 1;
  if (is_last && completes_gradients(action.kind)) check_buckets(OperationKind::kReduce, stage);
  rule_ = "actions are those of the schedule, in order";
  expect({.kind = OperationKind::kCompute, .action = action});
  rule_ = "after an action stand its sends, by channel and item";
  if (carries) check_messages(OperationKind::kSend, stage.sends_of(kind), action.microbatch);
  rule_ = "a stage that offloads does after each forward whose backward is not near";
  if (partners[place] > place) {
    expect({.kind = OperationKind::kOffload, .action = action});
  }
}

/// In an order of its own, not that of the facts that the program was written from.
void RankRules::check_tail() {
  if (!facts_.trains()) {
    rule_ = "after the forwards stands the exchange of the losses";
    return check_plain(OperationKind::kExchange);
  }
  rule_ =
      "the tail is exchange, joins, tie gradients, tie sum, norm where there is one, commit, "
      "update, gathers where state is sharded, tie values";
  check_plain(OperationKind::kExchange);
  for (const StageFacts* stage : stages_) check_buckets(OperationKind::kJoin, *stage);
  check_ties(ChannelKind::kTieGradient);
  check_plain(OperationKind::kTieSum);
  if (facts_.has_norm) check_plain(OperationKind::kNorm);
  check_plain(OperationKind::kCommit);
  check_plain(OperationKind::kUpdate);
  for (const StageFacts* stage : stages_) check_gathers(*stage);
  check_ties(ChannelKind::kTieValue);
}

void RankRules::check_ties(ChannelKind kind) {
  for (const StageFacts* stage : stages_) check_ties(OperationKind::kSend, stage->sends_of(kind));
  for (const StageFacts* stage : stages_) check_ties(OperationKind::kRecv, stage->recvs_of(kind));
}

/// A rank gets one, whose first replica says from whom; it may send one to each of several.
void RankRules::check_ties(OperationKind kind, const std::vector<Message>& messages) {
  for (const auto& [channel, from, to, item] : messages) {
    int nth = 0;
    for (int r = replica_; r < replica_ + num_replicas_; ++r) {
      const bool is_new =
          r == 0 || facts_.rank(to, r) != facts_.rank(to, r - 1);  // Ranks run neighbours.
      if (!is_new) continue;
      const int index = kind == OperationKind::kSend
                            ? index_.send_channel({channel, from, to, rank_, nth})
                            : index_.recv_channel({channel, from, to, rank_, nth});
      ++nth;
      expect({.kind = kind, .channel = index, .item = item});
    }
  }
}

void RankRules::check_messages(OperationKind kind, const std::vector<Message>& messages,
                               int microbatch) {
  const int replica = replica_of(microbatch);
  for (const Message& message : messages) {
    const auto& [channel, from, to, item] = message;
    int nth = 0;  // Of those that the sender has to this stage: one for each of its replicas.
    while (nth < replica && facts_.rank(from, replica - nth - 1) == facts_.rank(from, replica)) {
      ++nth;
    }
    expect({.kind = kind,
            .channel = index_.send_channel({channel, from, to, facts_.rank(from, replica), nth}),
            .item = item,
            .microbatch = microbatch});
  }
}

void RankRules::check_buckets(OperationKind kind, const StageFacts& stage) {
  if (num_ranks_ == 1) return;
  for (const int bucket : stage.buckets) {
    if (kind == OperationKind::kJoin && joined_.contains(bucket)) continue;
    expect({.kind = kind, .group = group_of(kind), .item = bucket});
  }
}

void RankRules::check_gathers(const StageFacts& stage) {
  if (!facts_.has_gathers) return;
  for (const int bucket : stage.owned) {
    expect({.kind = OperationKind::kGather,
            .group = group_of(OperationKind::kGather),
            .item = bucket});
  }
}

void RankRules::check_plain(OperationKind kind) { expect({.kind = kind, .group = group_of(kind)}); }

int RankRules::group_of(OperationKind kind) const {
  const auto& group = row_of(kind).group;
  return group ? index_.group(*group, rank_) : -1;
}

void RankRules::expect(const Operation& expected) {
  if (cursor_ == operations().size() || operations()[cursor_] != expected) {
    fail("`" + to_text(index_.program(), expected) + "`");
  }
  ++cursor_;
}

void RankRules::fail(const std::string& expected) const {
  std::string actual = "the end";
  if (cursor_ < operations().size()) {
    const Operation& operation = operations()[cursor_];
    actual = "`" + to_text(index_.program(), operation) + "`";
    // The texts leave out what follows from rank and word; where only that is wrong, say it.
    if (actual == expected) {
      actual += " (channel " + std::to_string(operation.channel) + ", group " +
                std::to_string(operation.group) + ", item " + std::to_string(operation.item) +
                ", microbatch " + std::to_string(operation.microbatch) + ", action " +
                to_text(operation.action) + ")";
    }
  }
  Error error(ErrorKind::kInvalidArgument, "step program: rank " + std::to_string(rank_) +
                                               ", operation " + std::to_string(cursor_) +
                                               ": expected " + expected + ", got " + actual + "; " +
                                               rule_);
  error.add({.rank = rank_});
  throw error;
}

}  // namespace trireme::schedule::internal
