#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "trireme/plan/schedule/action.h"
#include "trireme/plan/schedule/step_facts.h"

namespace trireme::partition {

/// A message as the clock sees it: of every microbatch, or of the end of a step.
struct TimedMessage {
  schedule::Message message;
  double copy_us = 0;             ///< Of the sender's processor.
  std::vector<double> delays_us;  ///< By replica.
};

/// The sum of a bucket over the replicas.
struct TimedReduce {
  double ready = 0;  ///< Part of the last backward after which its gradients are complete.
  double delay_us = 0;
};

/// What a stage does in a step.
struct TimedStage {
  double forward_us = 0, input_us = 0, weight_us = 0;
  std::vector<TimedReduce> reduces;  ///< In order; none where there is one replica.
  double tie_sum_us = 0, norm_us = 0, update_us = 0;
  double small_us = 0;           ///< A small message among the replicas.
  bool weighs = false;           ///< The replicas tell each other the weights of its losses first.
  std::vector<double> slowness;  ///< By replica: times that its work takes; empty: 1.

  double slowness_of(int replica) const { return slowness.empty() ? 1 : slowness[replica]; }
};

/// A step without its words: what it takes is all that is asked.
struct TimedStep {
  std::vector<TimedStage> stages;
  std::vector<TimedMessage> messages;  ///< Ascending.
  bool has_norm = false;
  double exchange_us = 0;           ///< A small message among all ranks.
  std::vector<double> pipeline_us;  ///< Likewise among the ranks of a replica; by replica.
};

/// What an action of `kind` takes of the stage's processor.
double work_us(const TimedStage& stage, schedule::ActionKind kind);

/// Plays steps of one schedule where every rank has cores of its own: what simulate::simulate says
/// of the step program, by going once through the actions in an order in which all that an action
/// waits for comes before it.
class StepClock {
 public:
  /// schedule   one stage on each rank; passes its check.
  explicit StepClock(const schedule::Schedule& schedule);

  /// Microseconds of the step. Cost: actions x replicas, messages counted.
  double play(const TimedStep& step);

 private:
  struct Entry {
    schedule::Action action;
    bool completes = false;  ///< The last gradients of its stage.
  };
  struct Route {
    double copy_us = 0, delay_us = 0;
    std::size_t channel = 0;
    int to = 0;
  };

  void play_actions(const TimedStep& step, int replica);
  void read_routes(const TimedStep& step, int replica);
  void play_reduces(const TimedStep& step);
  double play_tail(const TimedStep& step);
  void pass_ties(const TimedStep& step, schedule::ChannelKind kind);
  void meet_replicas(const TimedStage& timed, int stage);

  int num_stages_ = 0, num_microbatches_ = 0, num_replicas_ = 0;
  schedule::ActionKind completing_ = schedule::ActionKind::kBackward;
  std::vector<Entry> order_;
  std::vector<std::vector<Route>> value_routes_, gradient_routes_;  ///< By stage.
  std::vector<double> free_;                      ///< By channel: when its last message is there.
  std::vector<double> values_in_, gradients_in_;  ///< By stage, microbatch: when all are there.
  std::vector<std::vector<double>> now_, last_begin_;  ///< By replica, stage.
  std::vector<std::vector<double>> reduced_;           ///< By stage, bucket.
  std::vector<double> group_free_;                     ///< By stage: of the group of its replicas.
};

}  // namespace trireme::partition
