#pragma once

#include <span>
#include <vector>

#include "trireme/plan/schedule/action.h"
#include "trireme/plan/schedule/step_facts.h"

namespace trireme::schedule {

/// What has happened elsewhere, whatever the timing, once a stage has come to an action of its own:
/// an action waits for the messages that it needs, and each stage keeps its order.
///
/// Two stages, schedule `simple`, two microbatches, a value forwards and its gradient backwards:
///
///     stage 0:  0F0 0F1 0B0 0B1         0F1 waits for nothing of stage 1; 0B0 for 1B0, and so for
///     stage 1:  1F0 1F1 1B0 1B1         1F0 and 1F1 too
///
/// Immutable.
class Causes {
 public:
  /// schedule   one stage on each rank; passes its check.
  /// messages   of step facts; those of ties do not matter.
  /// Cost       actions x stages, times messages by stage.
  Causes(const Schedule& schedule, std::span<const Message> messages);

  int num_stages() const { return static_cast<int>(stages_.size()); }
  int num_actions(int stage) const { return static_cast<int>(stages_[stage].actions.size()); }
  const Action& action(int stage, int index) const { return stages_[stage].actions[index]; }

  /// Of the first `num_actions` of the stage, those that take messages of the kind: forwards of
  /// kValue, backwards or their input parts of kGradient.
  int num_taking(int stage, ChannelKind kind, int num_actions) const;

  /// Actions of `other` that are done whenever `stage` begins its action `index`.
  int done_before(int other, int stage, int index) const;

  /// By action of `stage`, and one more after the last: microbatches whose messages `other` can have
  /// sent to `stage` before that ends the action, were everybody else as fast as can be.
  std::vector<int> most_sent(int other, ChannelKind kind, int stage) const;

 private:
  struct Stage {
    std::vector<Action> actions;
    std::vector<std::vector<int>> done;  ///< [action][stage]: done whenever the action begins.
    std::vector<int> values, gradients;  ///< By number of actions: how many of them take these.
  };

  const std::vector<int>& counts(int stage, ChannelKind kind) const {
    return kind == ChannelKind::kValue ? stages_[stage].values : stages_[stage].gradients;
  }

  std::vector<Stage> stages_;
};

}  // namespace trireme::schedule
