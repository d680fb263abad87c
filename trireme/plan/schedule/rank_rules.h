#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "trireme/plan/schedule/operation_text.h"
#include "trireme/plan/schedule/step_facts.h"
#include "trireme/plan/schedule/step_program.h"

namespace trireme::schedule::internal {

/// Proves that the rank at a position of the pipeline whose first replica is `replica` does what step_program.h says, in
/// that order, and nothing else: kInvalidArgument with rank, position, operation, what was expected and
/// by which rule.
///
/// index     of a program whose channels and groups are those of the facts.
/// actions   the position's part of the schedule.
class RankRules {
 public:
  RankRules(const ProgramIndex& index, const StepFacts& facts, int position, int replica);

  void check(const std::vector<Action>& actions);

 private:
  const std::vector<Operation>& operations() const { return index_.program().ranks[rank_]; }

  std::vector<int> offload_partners(const std::vector<Action>& actions) const;
  void check_action(const std::vector<Action>& actions, const std::vector<int>& partners,
                    int place);
  void check_values(const std::vector<Action>& actions, std::size_t place);
  void check_values_of(OperationKind kind, int stage);
  void check_early_joins(const Action& action);
  void check_prefetch(const std::vector<Action>& actions, const std::vector<int>& partners,
                      int place);
  void check_tail();
  void check_ties(ChannelKind kind);
  void check_ties(OperationKind kind, const std::vector<Message>& messages);
  int replica_of(int microbatch) const;
  bool is_there(const Action& action) const;
  void check_messages(OperationKind kind, const std::vector<Message>& messages, int microbatch);
  void check_buckets(OperationKind kind, const StageFacts& stage);
  void check_gathers(const StageFacts& stage);
  void check_plain(OperationKind kind);
  int group_of(OperationKind kind) const;

  /// The operation at the cursor must be `expected`, by the rule that `rule_` tells.
  void expect(const Operation& expected);
  [[noreturn]] void fail(const std::string& expected) const;

  const ProgramIndex& index_;
  const StepFacts& facts_;
  std::vector<const StageFacts*> stages_;  ///< Of the rank.
  int replica_;
  int num_replicas_;  ///< That the rank runs.
  int num_ranks_;     ///< At its position.
  int rank_;
  std::size_t cursor_ = 0;
  std::map<int, bool> held_;  ///< Stages with whole values: whether they were awaited.
  std::vector<int> order_;    ///< Of these, as they came.
  int completed_ = -1;        ///< Stage whose gradients the action before completed.
  std::set<int> joined_;      ///< Buckets, before the tail.
  std::string rule_;
};

}  // namespace trireme::schedule::internal
