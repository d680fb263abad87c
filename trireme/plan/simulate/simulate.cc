#include "trireme/plan/simulate/simulate.h"

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <numeric>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/simulate/crowded_cores.h"
#include "trireme/plan/simulate/number_queue.h"
#include "trireme/plan/simulate/transfers.h"

// Time goes from event to event: the next moment at which a rank's work is done or something that a
// rank waits for is there. What comes next is on top of a heap, and only ranks that it concerns are
// looked at, so that a step costs its operations. Two ranks on one core, works 2 and 3, no waits:
//
//     time 0      both at work, half speed each
//     time 4      rank 0 is done; rank 1 has 1 left, full speed
//     time 5      rank 1 is done

namespace trireme::simulate {
namespace {

using schedule::Operation;
using schedule::OperationKind;

constexpr double kNever = Transfers::kNever;

/// Cores, and the ranks that share them.
struct Processor {
  std::vector<int> ranks;
  double num_at_full_speed = 0;
  double since_us = 0;  ///< Work of its ranks is accounted for until then.
  double rate = 0;      ///< Of each rank that is at work, from then on.
  int version = 0;      ///< Of its moment in the heap.
};

/// When something may go on: a rank's wait, or the work of a processor's ranks.
struct NextMoment {
  double us = 0;
  int rank = -1;
  int processor = -1;
  int version = 0;
  bool operator>(const NextMoment& other) const { return us > other.us; }
};

enum class Phase { kWork, kWait };

struct RankState {
  std::size_t next = 0;  ///< Operation.
  Phase phase = Phase::kWork;
  double begin_us = 0;
  double worked_us = 0;
  double work_us = 0;  ///< Left.
  double done_us = 0;  ///< Work of the operation before its `work_us`.
  int group = -1;      ///< That it waits for, and which of its collectives.
  int collective = -1;
  using Begun = std::map<int, std::pair<int, int>>;  ///< By bucket: group, collective.
  Begun reduces, gathers;
  std::queue<std::size_t, std::list<std::size_t>> to_start;  ///< Reduces, in what comes next.
};

class Player {
 public:
  Player(const schedule::StepProgram& program, const Prices& prices,
         const topology::Topology& topology, const std::vector<int>& played_by)
      : program_(program),
        prices_(prices),
        played_by_(played_by),
        ranks_(program.ranks.size()),
        processor_of_(program.ranks.size()),
        ready_(program.ranks.size()),
        changed_(program.ranks.size()),
        transfers_(program, topology, played_by, ready_) {
    result_.busy_us.resize(ranks_.size());
    add_processors(crowded_cores(topology, num_ranks()));
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      begin_operation(static_cast<int>(r));
      if (program.ranks[r].empty()) continue;
      ready_.add(static_cast<int>(r));
      ++num_left_;
    }
  }

  Simulation play() {
    settle();
    while (num_left_ > 0) {
      now_ = std::min(moments_.empty() ? kNever : moments_.top().us, transfers_.next_us());
      if (now_ == kNever) fail_waiting();
      if (transfers_.next_us() <= now_) transfers_.end_transfers(now_);
      while (!moments_.empty() && moments_.top().us <= now_) {
        const NextMoment moment = moments_.top();
        moments_.pop();
        if (moment.rank >= 0) ready_.add(moment.rank);
        if (moment.processor >= 0) end_work(moment);
      }
      settle();
    }
    result_.step_us = now_;
    for (int rank = 0; rank < num_ranks(); ++rank)
      result_.busy_us[rank] = result_.busy_us[played_by_[rank]];
    sort_events();
    result_.channels = std::move(transfers_).channels();
    return std::move(result_);
  }

 private:
  bool has_operation(int rank) const { return ranks_[rank].next < program_.ranks[rank].size(); }
  const Operation& operation(int rank) const { return program_.ranks[rank][ranks_[rank].next]; }
  const Price& price(int rank) const { return prices_[rank][ranks_[rank].next]; }
  bool is_at_work(int rank) const {
    return has_operation(rank) && ranks_[rank].phase == Phase::kWork && ranks_[rank].work_us > 0;
  }
  int num_ranks() const { return static_cast<int>(ranks_.size()); }

  /// Ranks that never wait for each other's work are processors of their own.
  void add_processors(std::vector<topology::SharedCores> crowded) {
    std::vector<bool> is_crowded(ranks_.size());
    for (topology::SharedCores& shared : crowded) {
      for (const int rank : shared.ranks) is_crowded[rank] = true;
      add_processor({std::move(shared.ranks), shared.num_at_full_speed});
    }
    for (int rank = 0; rank < num_ranks(); ++rank) {
      if (!is_crowded[rank]) add_processor({{rank}, 1});
    }
  }

  void add_processor(Processor processor) {
    for (const int rank : processor.ranks) {
      processor_of_[rank] = static_cast<int>(processors_.size());
    }
    processors_.push_back(std::move(processor));
  }

  void begin_operation(int rank) {
    RankState& state = ranks_[rank];
    state.phase = Phase::kWork;
    state.begin_us = now_;
    state.worked_us = kNever;
    state.done_us = 0;
    if (has_operation(rank)) begin_part(rank);
  }

  /// Work until the next reduction can start, or to the operation's end.
  void begin_part(int rank) {
    RankState& state = ranks_[rank];
    double end = price(rank).work_us;
    if (operation(rank).kind != OperationKind::kReduce && !state.to_start.empty()) {
      end = std::min(end, prices_[rank][state.to_start.front()].ready_us);
    }
    state.work_us = std::max(0.0, end - state.done_us);
    state.done_us = std::max(state.done_us, end);
  }

  /// Starts the reduction that was next; false where none is.
  bool start_reduce(int rank) {
    RankState& state = ranks_[rank];
    if (operation(rank).kind == OperationKind::kReduce || state.to_start.empty()) return false;
    const std::size_t index = state.to_start.front();
    const Operation& reduce = program_.ranks[rank][index];
    state.to_start.pop();
    state.reduces[reduce.item] = {reduce.group,
                                  transfers_.join(rank, reduce.group, prices_[rank][index], now_)};
    return true;
  }

  /// Lets ranks go on as far as they can at this moment.
  void settle() {
    while (!ready_.empty()) {
      const int rank = ready_.take();
      if (!has_operation(rank)) continue;
      account(processors_[processor_of_[rank]]);
      changed_.add(processor_of_[rank]);
      while (has_operation(rank) && advance(rank)) continue;
      if (!has_operation(rank)) {
        --num_left_;
      } else if (ranks_[rank].phase == Phase::kWait && ready_us(rank) < kNever) {
        moments_.push({.us = ready_us(rank), .rank = rank});
      }
    }
    while (!changed_.empty()) begin_work(changed_.take());
  }

  /// One phase of the rank's operation, if it can end now.
  bool advance(int rank) {
    RankState& state = ranks_[rank];
    if (state.phase == Phase::kWork) {
      if (state.work_us > 0) return false;
      if (start_reduce(rank)) {
        begin_part(rank);
        return true;
      }
      state.worked_us = std::min(state.worked_us, now_);
      if (!has_room(rank)) return false;
      post(rank);
      state.phase = Phase::kWait;
      return true;
    }
    if (ready_us(rank) > now_) return false;
    if (operation(rank).kind == OperationKind::kRecv)
      transfers_.take(operation(rank).channel, now_);
    if (now_ > state.begin_us) {
      result_.events.push_back(
          {rank, static_cast<int>(state.next), state.begin_us, state.worked_us, now_});
    }
    ++state.next;
    begin_operation(rank);
    return true;
  }

  bool has_room(int rank) const {
    const Operation& operation = this->operation(rank);
    return schedule::row_of(operation.kind).wait != schedule::Wait::kRoom ||
           transfers_.has_room(operation.channel);
  }

  /// What the rank's operation does to others once its work is done.
  void post(int rank) {
    const Operation& operation = this->operation(rank);
    RankState& state = ranks_[rank];
    state.collective = -1;
    if (operation.kind == OperationKind::kReduce) {
      state.to_start.push(state.next);
      return;
    }
    if (operation.kind == OperationKind::kUnshard) {
      state.gathers[operation.item] = {operation.group, join(rank)};
      return;
    }
    switch (schedule::row_of(operation.kind).wait) {
      case schedule::Wait::kRoom:
        return transfers_.send(operation.channel, price(rank), now_);
      case schedule::Wait::kSum:
        return wait_for(state, state.reduces);
      case schedule::Wait::kValues:
        return wait_for(state, state.gathers);
      case schedule::Wait::kGroup:
        state.group = operation.group;
        state.collective = operation.group < 0 ? -1 : join(rank);
        return;
      case schedule::Wait::kMessage:
      case schedule::Wait::kNothing:
        return;
    }
  }

  /// For what has begun before, of the bucket of the rank's operation.
  void wait_for(RankState& state, const RankState::Begun& begun) {
    const int rank = static_cast<int>(&state - ranks_.data());
    const auto found = begun.find(operation(rank).item);
    if (found != begun.end()) std::tie(state.group, state.collective) = found->second;
  }

  /// Takes part in the collective of the rank's operation: its number in the group.
  int join(int rank) { return transfers_.join(rank, operation(rank).group, price(rank), now_); }

  /// When what the rank's operation waits for is there; kNever where nobody knows yet.
  double ready_us(int rank) const {
    const RankState& state = ranks_[rank];
    if (operation(rank).kind == OperationKind::kRecv)
      return transfers_.message_us(operation(rank).channel);
    if (state.collective < 0) return now_;
    return transfers_.done_us(state.group, state.collective);
  }

  /// What the processor's ranks have done until now.
  void account(Processor& processor) {
    for (const int rank : processor.ranks) {
      if (!is_at_work(rank)) continue;
      RankState& state = ranks_[rank];
      // By the same expression as in begin_work, so that rounding leaves no work behind.
      const bool is_done = processor.since_us + state.work_us / processor.rate <= now_;
      state.work_us = is_done ? 0 : state.work_us - (now_ - processor.since_us) * processor.rate;
      if (is_done) ready_.add(rank);  // Rounding may tell so only now.
      result_.busy_us[rank] += now_ - processor.since_us;
    }
    processor.since_us = now_;
  }

  /// The next moment at which work of one of its ranks is done.
  void begin_work(int index) {
    Processor& processor = processors_[index];
    ++processor.version;
    const auto num_busy = std::count_if(processor.ranks.begin(), processor.ranks.end(),
                                        [this](int rank) { return is_at_work(rank); });
    if (num_busy == 0) return;
    processor.since_us = now_;
    processor.rate = std::min(1.0, processor.num_at_full_speed / static_cast<double>(num_busy));
    double next = kNever;
    for (const int rank : processor.ranks) {
      if (is_at_work(rank)) next = std::min(next, now_ + ranks_[rank].work_us / processor.rate);
    }
    moments_.push({.us = next, .processor = index, .version = processor.version});
  }

  void end_work(const NextMoment& moment) {
    Processor& processor = processors_[moment.processor];
    if (moment.version != processor.version) return;  // Others have come or gone since.
    account(processor);
    changed_.add(moment.processor);
    for (const int rank : processor.ranks) {
      if (has_operation(rank) && !is_at_work(rank)) ready_.add(rank);
    }
  }

  void sort_events() {
    std::ranges::sort(result_.events, {}, [](const SimulatedEvent& event) {
      return std::tuple(event.end_us, event.rank, event.operation);
    });
  }

  [[noreturn]] void fail_waiting() const {
    std::string text;
    for (int rank = 0; rank < num_ranks(); ++rank) {
      if (!has_operation(rank)) continue;
      text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank) + " at '" +
              schedule::to_text(program_, operation(rank)) + "'";
    }
    throw Error(ErrorKind::kInvalidArgument, "the step never ends: " + text + " wait for ever");
  }

  const schedule::StepProgram& program_;
  const Prices& prices_;
  const std::vector<int>& played_by_;  ///< By rank.
  std::vector<RankState> ranks_;
  std::vector<Processor> processors_;
  std::vector<int> processor_of_;  ///< By rank.
  NumberQueue ready_;              ///< Ranks that may go on at this moment.
  NumberQueue changed_;            ///< Processors whose ranks at work may be others now.
  Transfers transfers_;
  std::priority_queue<NextMoment, std::vector<NextMoment>, std::greater<>> moments_;
  std::size_t num_left_ = 0;  ///< Ranks that are not done.
  double now_ = 0;
  Simulation result_;
};

}  // namespace

Simulation simulate(const schedule::StepProgram& program, const Prices& prices,
                    const topology::Topology& topology, const std::vector<int>& played_by) {
  if (!played_by.empty()) return Player(program, prices, topology, played_by).play();
  std::vector<int> all(program.ranks.size());
  std::iota(all.begin(), all.end(), 0);
  return Player(program, prices, topology, all).play();
}

}  // namespace trireme::simulate
