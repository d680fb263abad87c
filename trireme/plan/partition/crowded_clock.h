#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "trireme/plan/partition/step_clock.h"
#include "trireme/plan/schedule/action.h"

namespace trireme::partition {

/// Cores that ranks share, more of them than cores.
struct CrowdedCores {
  std::vector<std::pair<int, int>> ranks;  ///< Stage and replica of each.
  double num_at_full_speed = 0;
};

/// Plays steps of one schedule where ranks share cores: what simulate::simulate says of the step program, from event to
/// event, without a program, names and events to remember.
class CrowdedClock {
 public:
  /// schedule   one stage on each rank; passes its check.
  /// crowded    other ranks have a core of their own.
  CrowdedClock(schedule::Schedule schedule, std::vector<CrowdedCores> crowded);

  /// Microseconds of the step. Cost: what ranks do, times those that share a core with them.
  ///
  /// most_us   of a step that takes longer some number above this is said, as soon as it is known: time that cores have
  ///           idled does not come back.
  double play(const TimedStep& step, double most_us = kNoLimit);

  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

 private:
  enum class Kind : std::uint8_t { kWork, kTake, kPost, kStart, kSums, kMeet };

  /// What a rank does, by stage: all replicas do the same.
  struct Task {
    Kind kind = Kind::kWork;
    double us = 0;    ///< Work; of a collective, its delay.
    int index = 0;    ///< Of what is taken; channel; of a group, which kind.
    int message = 0;  ///< That is posted: place in TimedStep::messages.
    int inbox = 0;    ///< Where that comes.
  };

  /// What a rank waits for before it goes on.
  struct Inbox {
    int num_missing = 0;
    double ready_us = 0;
  };

  struct Collective {
    int num_missing = 0;
    double done_us = std::numeric_limits<double>::infinity();
  };

  struct Group {
    std::vector<int> ranks;
    std::vector<Collective> collectives;
  };

  struct Rank {
    int stage = 0, replica = 0, processor = 0;
    std::size_t next = 0;     ///< Task.
    bool has_begun = false;   ///< That task.
    double left_us = 0;       ///< Of its work; at work where that is positive.
    int collective = -1;      ///< That it waits for.
    std::vector<int> joined;  ///< By kind of group: collectives that it has come to.
  };

  struct Processor {
    std::vector<int> ranks;
    double num_at_full_speed = 1;
    double since_us = 0, rate = 1;
    int num_busy = 0;    ///< Ranks at work since then.
    double work_us = 0;  ///< That its ranks have still to do, as it was then.
    int version = 0;
    bool has_changed = false;
  };

  /// When a rank's wait ends, or the next work of a processor.
  struct Moment {
    double us = 0;
    int rank = -1, processor = -1, version = 0;
    bool operator>(const Moment& other) const { return us > other.us; }
  };

  // Kinds of groups, as `Task::index` has them.
  static constexpr int kWorld = 0, kReplicas = 1, kPipeline = 2, kNumGroupKinds = 3;

  void read_ranks(int num_replicas);
  void write_tasks(const TimedStep& step);
  void add_up_work(const TimedStep& step);
  void write_actions(const TimedStep& step, int stage);
  void write_completing(const TimedStage& stage, double work_us);
  void write_ties(const TimedStep& step, int stage, schedule::ChannelKind kind);
  void add(const Task& task);
  void add_work(double us) {
    if (us > 0) add({.kind = Kind::kWork, .us = us});
  }
  void reset();
  void settle(const TimedStep& step);
  bool advance(const TimedStep& step, int rank);
  double wait_us(Rank& rank, const Task& task);
  void post(const TimedStep& step, Rank& rank, const Task& task);
  int join(Rank& rank, int kind, double delay_us);
  Group& group(const Rank& rank, int kind);
  Inbox& inbox(int replica, int index) { return inboxes_[replica * num_inboxes_ + index]; }
  void wake(int rank);
  void account(Processor& processor);
  void begin_work(int processor);
  /// When the step ends at the earliest.
  double least_us() const;
  void push(const Moment& moment);

  schedule::Schedule schedule_;
  std::vector<CrowdedCores> crowded_;
  int num_stages_ = 0, num_replicas_ = 0;
  std::vector<Rank> ranks_;  ///< Replica after replica.
  std::vector<Processor> processors_;
  std::vector<Group> groups_;             ///< World, replicas of each stage, pipelines.
  std::vector<std::vector<Task>> tasks_;  ///< By stage.
  int writing_ = 0;                       ///< Stage whose tasks are written.
  int num_inboxes_ = 0;                   ///< Of a replica.
  std::vector<Inbox> inboxes_;
  std::vector<int> messages_in_;  ///< By inbox: those that come.
  std::vector<double> free_;      ///< By replica, channel: when its last message is there.
  std::vector<int> channels_;     ///< By message of the step.
  int num_channels_ = 0;
  std::vector<std::vector<int>> sent_;  ///< By kind, stage: places of messages.
  std::vector<int> ready_;              ///< Ranks that may go on.
  std::vector<bool> is_ready_;
  std::vector<int> changed_;     ///< Processors.
  std::vector<Moment> moments_;  ///< A heap.
  double now_ = 0;
};

}  // namespace trireme::partition
