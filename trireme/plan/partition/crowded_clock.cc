#include "trireme/plan/partition/crowded_clock.h"

#include <algorithm>
#include <functional>

#include "trireme/base/check.h"
#include "trireme/error.h"

// A stage's tasks are written once for all of its replicas, without what takes no time; then time goes from event to event as
// in simulate.cc: works 2 and 3 of two ranks on one core end at 4 and at 5.

namespace trireme::partition {

using schedule::ChannelKind;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kRoundedUp = 1 + 1e-6;  // Many small parts of the work are taken away one by one.

}  // namespace

CrowdedClock::CrowdedClock(schedule::Schedule schedule, std::vector<CrowdedCores> crowded)
    : schedule_(std::move(schedule)),
      crowded_(std::move(crowded)),
      num_stages_(schedule_.num_stages),
      tasks_(num_stages_),
      num_inboxes_(2 * num_stages_ * (schedule_.num_microbatches + 1)) {}

double CrowdedClock::play(const TimedStep& step, double most_us) {
  read_ranks(static_cast<int>(step.pipeline_us.size()));
  write_tasks(step);
  reset();
  add_up_work(step);
  settle(step);
  while (!moments_.empty()) {
    if (const double least = least_us(); least > most_us * kRoundedUp) {
      ready_.clear();
      return least;
    }
    now_ = moments_.front().us;
    while (!moments_.empty() && moments_.front().us <= now_) {
      std::ranges::pop_heap(moments_, std::greater{});
      const Moment moment = moments_.back();
      moments_.pop_back();
      if (moment.rank >= 0) wake(moment.rank);
      if (moment.processor < 0) continue;
      Processor& processor = processors_[moment.processor];
      if (moment.version != processor.version) continue;  // Others have come or gone since.
      for (const int rank : processor.ranks) wake(rank);
    }
    settle(step);
  }
  for (const Rank& rank : ranks_) {
    TRIREME_CHECK(rank.next == tasks_[rank.stage].size(), "ranks wait for ever");
  }
  return now_;
}

void CrowdedClock::read_ranks(int num_replicas) {
  if (num_replicas_ == num_replicas) return;
  num_replicas_ = num_replicas;
  ranks_.assign(static_cast<std::size_t>(num_stages_) * num_replicas, {});
  groups_.assign(1 + num_stages_ + num_replicas, {});
  for (int index = 0; index < std::ssize(ranks_); ++index) {
    Rank& rank = ranks_[index];
    rank.stage = index % num_stages_;
    rank.replica = index / num_stages_;
    rank.processor = -1;
    for (int kind = 0; kind < kNumGroupKinds; ++kind) group(rank, kind).ranks.push_back(index);
  }
  processors_.clear();
  for (const CrowdedCores& cores : crowded_) {
    Processor& processor = processors_.emplace_back();
    processor.num_at_full_speed = cores.num_at_full_speed;
    for (const auto& [stage, replica] : cores.ranks) {
      processor.ranks.push_back(replica * num_stages_ + stage);
      ranks_[processor.ranks.back()].processor = static_cast<int>(processors_.size()) - 1;
    }
  }
  for (int index = 0; index < std::ssize(ranks_); ++index) {
    if (ranks_[index].processor >= 0) continue;
    ranks_[index].processor = static_cast<int>(processors_.size());
    processors_.emplace_back().ranks = {index};
  }
}

CrowdedClock::Group& CrowdedClock::group(const Rank& rank, int kind) {
  if (kind == kWorld) return groups_[0];
  return groups_[kind == kReplicas ? 1 + rank.stage : 1 + num_stages_ + rank.replica];
}

void CrowdedClock::write_tasks(const TimedStep& step) {
  sent_.assign(schedule::kNumChannelKinds * num_stages_, {});
  messages_in_.assign(2 * schedule::kNumChannelKinds * num_stages_, 0);
  channels_.assign(step.messages.size(), 0);
  num_channels_ = 0;
  const schedule::Message* last = nullptr;
  for (std::size_t i = 0; i < step.messages.size(); ++i) {
    const schedule::Message& message = step.messages[i].message;
    const int kind = static_cast<int>(message.kind);
    sent_[kind * num_stages_ + message.from_stage].push_back(static_cast<int>(i));
    ++messages_in_[kind * num_stages_ + message.to_stage];
    const bool is_same = last != nullptr && last->kind == message.kind &&
                         last->from_stage == message.from_stage &&
                         last->to_stage == message.to_stage;
    num_channels_ += is_same ? 0 : 1;
    channels_[i] = num_channels_ - 1;
    last = &message;
  }
  for (int s = 0; s < num_stages_; ++s) {
    const TimedStage& stage = step.stages[s];
    writing_ = s;
    tasks_[s].clear();
    if (stage.weighs) add({.kind = Kind::kMeet, .us = stage.small_us, .index = kReplicas});
    write_actions(step, s);
    add({.kind = Kind::kMeet, .us = step.exchange_us, .index = kWorld});
    if (!stage.reduces.empty()) add({.kind = Kind::kSums});
    write_ties(step, s, ChannelKind::kTieGradient);
    add_work(stage.tie_sum_us + (step.has_norm ? stage.norm_us : 0));
    if (step.has_norm) add({.kind = Kind::kMeet, .index = kPipeline});
    add({.kind = Kind::kMeet, .us = stage.small_us, .index = kReplicas});  // Commit.
    add_work(stage.update_us);
    write_ties(step, s, ChannelKind::kTieValue);
  }
}

void CrowdedClock::add_up_work(const TimedStep& step) {
  for (Processor& processor : processors_) {
    processor.work_us = 0;
    for (const int index : processor.ranks) {
      const Rank& rank = ranks_[index];
      double us = 0;
      for (const Task& task : tasks_[rank.stage]) us += task.kind == Kind::kWork ? task.us : 0;
      processor.work_us += us * step.stages[rank.stage].slowness_of(rank.replica);
    }
  }
}

double CrowdedClock::least_us() const {
  double least = now_;
  for (const Processor& processor : processors_) {
    least = std::max(least, processor.since_us + processor.work_us / processor.num_at_full_speed);
  }
  return least;
}

void CrowdedClock::add(const Task& task) { tasks_[writing_].push_back(task); }

void CrowdedClock::write_actions(const TimedStep& step, int stage) {
  const int m = schedule_.num_microbatches;
  for (const auto& [kind, own, microbatch] : schedule_.ranks[stage]) {
    const bool carries = schedule::carries_messages(kind);
    const int place = static_cast<int>(schedule::carried_by(kind)) * num_stages_;
    if (carries && messages_in_[place + stage] > 0) {
      add({.kind = Kind::kTake, .index = (place + stage) * m + microbatch});
    }
    const double us = work_us(step.stages[stage], kind);
    if (microbatch + 1 == m && schedule::completes_gradients(kind)) {
      write_completing(step.stages[stage], us);
    } else {
      add_work(us);
    }
    if (!carries) continue;
    for (const int message : sent_[place + stage]) {
      const TimedMessage& timed = step.messages[message];
      add_work(timed.copy_us);
      add({.kind = Kind::kPost,
           .index = channels_[message],
           .message = message,
           .inbox = (place + timed.message.to_stage) * m + microbatch});
    }
  }
}

/// The action in which reductions start, each once its bucket is complete.
void CrowdedClock::write_completing(const TimedStage& stage, double work_us) {
  double done_us = 0;
  for (const TimedReduce& reduce : stage.reduces) {
    const double until_us = std::max(done_us, std::min(work_us, reduce.ready * work_us));
    add_work(until_us - done_us);
    add({.kind = Kind::kStart, .us = reduce.delay_us, .index = kReplicas});
    done_us = until_us;
  }
  add_work(work_us - done_us);
}

/// All sends of a stage stand before its recvs.
void CrowdedClock::write_ties(const TimedStep& step, int stage, ChannelKind kind) {
  const int place = static_cast<int>(kind) * num_stages_;
  const auto inbox = [&](int at) {
    return 2 * num_stages_ * schedule_.num_microbatches + place - 2 * num_stages_ + at;
  };
  for (const int message : sent_[place + stage]) {
    const TimedMessage& timed = step.messages[message];
    add_work(timed.copy_us);
    add({.kind = Kind::kPost,
         .index = channels_[message],
         .message = message,
         .inbox = inbox(timed.message.to_stage)});
  }
  if (messages_in_[place + stage] > 0) add({.kind = Kind::kTake, .index = inbox(stage)});
}

void CrowdedClock::reset() {
  now_ = 0;
  inboxes_.assign(static_cast<std::size_t>(num_inboxes_) * num_replicas_, {});
  const int m = schedule_.num_microbatches, num_parts = 2 * num_stages_;
  for (int i = 0; i < num_inboxes_; ++i) {
    const bool is_tie = i >= num_parts * m;
    const int num = messages_in_[is_tie ? i - num_parts * m + num_parts : i / m];
    for (int r = 0; r < num_replicas_; ++r) inbox(r, i).num_missing = num;
  }
  free_.assign(static_cast<std::size_t>(num_channels_) * num_replicas_, 0);
  for (Group& group : groups_) group.collectives.clear();
  for (Rank& rank : ranks_) {
    rank.next = 0;
    rank.has_begun = false;
    rank.left_us = 0;
    rank.collective = -1;
    rank.joined.assign(kNumGroupKinds, 0);
  }
  for (Processor& processor : processors_) {
    processor.since_us = 0;
    processor.rate = 1;
    processor.num_busy = 0;
    processor.version = 0;
    processor.has_changed = false;
  }
  is_ready_.assign(ranks_.size(), false);
  moments_.clear();
  for (int rank = 0; rank < std::ssize(ranks_); ++rank) wake(rank);
}

void CrowdedClock::wake(int rank) {
  if (is_ready_[rank]) return;
  is_ready_[rank] = true;
  ready_.push_back(rank);
}

/// Lets ranks go on as far as they can at this moment.
void CrowdedClock::settle(const TimedStep& step) {
  while (!ready_.empty()) {
    const int index = ready_.back();
    ready_.pop_back();
    is_ready_[index] = false;
    Rank& rank = ranks_[index];
    Processor& processor = processors_[rank.processor];
    account(processor);
    if (!processor.has_changed) changed_.push_back(rank.processor);
    processor.has_changed = true;
    while (rank.next < tasks_[rank.stage].size() && advance(step, index)) {
      ++rank.next;
      rank.has_begun = false;
    }
  }
  for (const int processor : changed_) begin_work(processor);
  changed_.clear();
}

/// Whether the rank's task can end now.
bool CrowdedClock::advance(const TimedStep& step, int index) {
  Rank& rank = ranks_[index];
  const Task& task = tasks_[rank.stage][rank.next];
  const bool begins = !rank.has_begun;
  rank.has_begun = true;
  switch (task.kind) {
    case Kind::kWork:
      if (begins) rank.left_us = task.us * step.stages[rank.stage].slowness_of(rank.replica);
      return rank.left_us <= 0;
    case Kind::kPost:
      post(step, rank, task);
      return true;
    case Kind::kStart:
      join(rank, task.index, task.us);
      return true;
    case Kind::kMeet:
      if (begins) {
        const double own_us = task.index == kPipeline ? step.pipeline_us[rank.replica] : task.us;
        rank.collective = join(rank, task.index, own_us);
      }
      break;
    case Kind::kSums:
      rank.collective = rank.joined[kReplicas] - 1;
      break;
    case Kind::kTake:
      break;
  }
  const double until_us = wait_us(rank, task);
  if (until_us <= now_) return true;
  if (until_us < kNever) push({.us = until_us, .rank = index});
  return false;
}

/// When what the rank waits for is there; kNever where nobody knows yet.
double CrowdedClock::wait_us(Rank& rank, const Task& task) {
  if (task.kind == Kind::kTake) {
    const Inbox& box = inbox(rank.replica, task.index);
    return box.num_missing > 0 ? kNever : box.ready_us;
  }
  const int kind = task.kind == Kind::kSums ? kReplicas : task.index;
  return group(rank, kind).collectives[rank.collective].done_us;
}

void CrowdedClock::post(const TimedStep& step, Rank& rank, const Task& task) {
  const TimedMessage& timed = step.messages[task.message];
  double& free = free_[rank.replica * num_channels_ + task.index];
  free = std::max(free, now_) + timed.delays_us[rank.replica];
  Inbox& box = inbox(rank.replica, task.inbox);
  box.ready_us = std::max(box.ready_us, free);
  if (--box.num_missing == 0) wake(rank.replica * num_stages_ + timed.message.to_stage);
}

/// Takes part in the group's next collective: its number.
int CrowdedClock::join(Rank& rank, int kind, double delay_us) {
  Group& group = this->group(rank, kind);
  const int index = rank.joined[kind]++;
  if (index == std::ssize(group.collectives)) {
    group.collectives.push_back({.num_missing = static_cast<int>(group.ranks.size())});
  }
  Collective& collective = group.collectives[index];
  if (--collective.num_missing > 0) return index;
  const double before = index == 0 ? now_ : group.collectives[index - 1].done_us;
  collective.done_us = std::max(now_, before) + delay_us;
  for (const int other : group.ranks) wake(other);
  return index;
}

/// What the processor's ranks have done until now.
void CrowdedClock::account(Processor& processor) {
  processor.work_us -= (now_ - processor.since_us) * processor.rate * processor.num_busy;
  for (const int index : processor.ranks) {
    Rank& rank = ranks_[index];
    if (rank.left_us <= 0) continue;
    // By the same expression as in begin_work, so that rounding leaves no work behind.
    const bool is_done = processor.since_us + rank.left_us / processor.rate <= now_;
    rank.left_us = is_done ? 0 : rank.left_us - (now_ - processor.since_us) * processor.rate;
    if (is_done) wake(index);  // Rounding may tell so only now.
  }
  processor.since_us = now_;
}

/// The next moment at which work of one of its ranks is done.
void CrowdedClock::begin_work(int index) {
  Processor& processor = processors_[index];
  processor.has_changed = false;
  ++processor.version;
  int num_busy = 0;
  double least = kNever;
  for (const int rank : processor.ranks) {
    if (ranks_[rank].left_us <= 0) continue;
    ++num_busy;
    least = std::min(least, ranks_[rank].left_us);
  }
  processor.num_busy = num_busy;
  if (num_busy == 0) return;
  processor.since_us = now_;
  processor.rate = std::min(1.0, processor.num_at_full_speed / num_busy);
  push({.us = now_ + least / processor.rate, .processor = index, .version = processor.version});
}

void CrowdedClock::push(const Moment& moment) {
  moments_.push_back(moment);
  std::ranges::push_heap(moments_, std::greater{});
}

}  // namespace trireme::partition
