#pragma once

#include <array>
#include <span>
#include <vector>

#include "trireme/plan/schedule/action.h"
#include "trireme/plan/schedule/step_facts.h"

namespace trireme::schedule {

/// What has happened elsewhere, whatever the timing, once a rank of the pipeline has come to an action of its own:
/// an action waits for the messages that it needs, and each rank keeps its order.
///
/// Two stages on two ranks, schedule `simple`, two microbatches, a value forwards and its gradient backwards:
///
///     stage 0:  0F0 0F1 0B0 0B1         0F1 waits for nothing of stage 1; 0B0 for 1B0, and so for
///     stage 1:  1F0 1F1 1B0 1B1         1F0 and 1F1 too
///
/// Immutable.
class Causes {
 public:
  /// schedule   passes its check.
  /// messages   of step facts; those of ties do not matter.
  /// Cost       actions x ranks, times messages by stage.
  Causes(const Schedule& schedule, std::span<const Message> messages);

  /// Pipeline rank of a stage.
  int rank_of(int stage) const { return schedule_.rank_of(stage); }
  int num_actions(int rank) const { return static_cast<int>(schedule_.ranks[rank].size()); }

  /// Of the first `num_actions` of the stage's rank, those of the stage that take messages of the
  /// kind: forwards of kValue, backwards or their input parts of kGradient.
  int num_taking(int stage, ChannelKind kind, int num_actions) const;

  /// Actions of the rank `other` that are done whenever `rank` begins its action `index`.
  int done_before(int other, int rank, int index) const;

  /// By action of the rank of `to`, and one more after the last: microbatches whose messages the stage `from` can
  /// have sent to it before that ends the action, were everybody else as fast as can be.
  std::vector<int> most_sent(int from, ChannelKind kind, int to) const;

 private:
  struct Stage {
    /// By kind, value or gradient: stages whose messages its actions wait for.
    std::array<std::vector<int>, 2> sources;
    /// By kind and microbatch: place of the action that takes and gives these on its rank.
    std::array<std::vector<int>, 2> places;
    /// By kind and number of the rank's actions: how many of them take these.
    std::array<std::vector<int>, 2> counts;
  };

  void read_stages(std::span<const Message> messages);
  bool work_out_next(int rank);
  bool add_sources(const Action& action, std::vector<int>& done) const;

  Schedule schedule_;
  std::vector<Stage> stages_;
  std::vector<std::vector<std::vector<int>>> done_;  ///< [rank][action][rank]: done when it begins.
};

}  // namespace trireme::schedule
