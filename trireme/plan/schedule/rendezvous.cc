#include "trireme/plan/schedule/rendezvous.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "trireme/error.h"

// Ranks do not race: what one sends does not depend on when, so however far each can come is the
// same in every order of running them. One run from end to end therefore finds every deadlock, and
// holding one rank back while the others go as far as they can finds the most that can pile up
// before it.

namespace trireme::schedule {
namespace {

bool is_member(const RankGroup& group, int rank) {
  return std::find(group.ranks.begin(), group.ranks.end(), rank) != group.ranks.end();
}

/// A collective that some rank has come to.
struct GroupMeeting {
  const Operation* operation = nullptr;
  int first_rank = 0;  ///< Who came first.
  std::set<int> ranks;
};

class Machine {
 public:
  explicit Machine(const StepProgram& program)
      : program_(program),
        cursors_(program.ranks.size()),
        ranks_(program.ranks.size()),
        meetings_(program.groups.size()),
        posted_(program.channels.size()) {}

  /// Lets all ranks but `held_back` go as far as they can.
  void run(int held_back = -1) {
    for (bool is_moving = true; is_moving;) {
      is_moving = false;
      for (int rank = 0; rank < num_ranks(); ++rank) {
        while (rank != held_back && step(rank)) is_moving = true;
      }
    }
  }

  /// The rank's next operation; false where it has none or must wait.
  bool step(int rank) {
    if (is_done(rank)) return false;
    const Operation& operation = next(rank);
    if (row_of(operation.kind).group && !ranks_[rank].has_come) come(rank);
    const GroupMeeting* awaited = awaited_meeting(rank);
    if (awaited != nullptr && !is_complete(*awaited)) return false;
    if (row_of(operation.kind).wait == Wait::kRoom && is_full(operation.channel)) return false;
    if (operation.kind == OperationKind::kRecv) {
      std::deque<const Operation*>& posted = posted_[operation.channel];
      if (posted.empty()) return false;
      expect_message(rank, operation, *posted.front());
      posted.pop_front();
    }
    if (operation.kind == OperationKind::kSend) posted_[operation.channel].push_back(&operation);
    ranks_[rank].has_come = false;
    ++cursors_[rank];
    return true;
  }

  bool is_full(int channel) const {
    const int limit = program_.channels[channel].limit;
    return limit > 0 && num_held(channel) >= limit;
  }

  int num_held(int channel) const { return static_cast<int>(posted_[channel].size()); }

  /// All ranks are done and nothing is left over.
  void expect_end() const {
    for (int rank = 0; rank < num_ranks(); ++rank) {
      if (!is_done(rank)) {
        throw Error(ErrorKind::kInvalidArgument,
                    "step program: ranks wait for ever: " + waiting_circle(rank));
      }
    }
    for (const std::deque<const Operation*>& posted : posted_) {
      if (posted.empty()) continue;
      throw Error(ErrorKind::kInvalidArgument,
                  "step program: nobody receives `" + to_text(program_, *posted.front()) + "`");
    }
  }

 private:
  int num_ranks() const { return static_cast<int>(program_.ranks.size()); }
  bool is_done(int rank) const { return cursors_[rank] == program_.ranks[rank].size(); }
  const Operation& next(int rank) const { return program_.ranks[rank][cursors_[rank]]; }

  /// The rank takes part in the next collective of the group; all members must have the same.
  void come(int rank) {
    const Operation& operation = next(rank);
    RankState& state = ranks_[rank];
    const std::size_t index = state.num_meetings[operation.group]++;
    std::vector<GroupMeeting>& meetings = meetings_[operation.group];
    if (index == meetings.size()) meetings.push_back({&operation, rank, {}});
    GroupMeeting& meeting = meetings[index];
    if (*meeting.operation != operation) {
      fail(rank, "meets `" + to_text(program_, *meeting.operation) + "` of rank " +
                     std::to_string(meeting.first_rank) + " in its group");
    }
    meeting.ranks.insert(rank);
    state.has_come = true;
    state.last_meeting = {operation.group, index};
    if (operation.kind == OperationKind::kReduce) {
      state.reductions[operation.item] = state.last_meeting;
    }
    if (operation.kind == OperationKind::kUnshard) {
      state.gathers[operation.item] = state.last_meeting;
    }
  }

  /// The collective that the rank's next operation waits for: nobody waits where a reduction
  /// starts, but where it is joined. Null where it waits for none.
  const GroupMeeting* awaited_meeting(int rank) const {
    const Operation& operation = next(rank);
    const Wait wait = row_of(operation.kind).wait;
    const RankState& state = ranks_[rank];
    if (wait == Wait::kSum) return begun(rank, state.reductions, "joins what was not reduced");
    if (wait == Wait::kValues) return begun(rank, state.gathers, "awaits what is not on its way");
    if (wait != Wait::kGroup || !state.has_come) return nullptr;
    return &meetings_[state.last_meeting.first][state.last_meeting.second];
  }

  using Place = std::pair<int, std::size_t>;  // A group and the number of its collective.

  /// Of the bucket of the rank's next operation.
  const GroupMeeting* begun(int rank, const std::map<int, Place>& meetings,
                            const char* otherwise) const {
    const auto place = meetings.find(next(rank).item);
    if (place == meetings.end()) fail(rank, otherwise);
    return &meetings_[place->second.first][place->second.second];
  }

  bool is_complete(const GroupMeeting& meeting) const {
    return meeting.ranks.size() == program_.groups[meeting.operation->group].ranks.size();
  }

  void expect_message(int rank, const Operation& recv, const Operation& sent) const {
    if (recv.item == sent.item && of_replica(recv) == of_replica(sent)) return;
    fail(rank, "finds the message of `" + to_text(program_, sent) + "` next on its channel");
  }

  /// Ranks number through what they run of several replicas; a channel is of one.
  int of_replica(const Operation& message) const {
    return message.microbatch < 0 ? -1
                                  : message.microbatch % std::max(program_.num_microbatches, 1);
  }

  /// What `rank`, which cannot go on, waits for: a rank.
  int awaited(int rank) const {
    const Operation& operation = next(rank);
    if (row_of(operation.kind).operand == OperandKind::kMessage) {
      const Channel& channel = program_.channels[operation.channel];
      return operation.kind == OperationKind::kRecv ? channel.from_rank : channel.to_rank;
    }
    const GroupMeeting& meeting = *awaited_meeting(rank);
    for (const int member : program_.groups[meeting.operation->group].ranks) {
      if (!meeting.ranks.contains(member)) return member;
    }
    return rank;
  }

  std::string waiting_circle(int rank) const {
    std::set<int> seen;
    std::string text;
    while (seen.insert(rank).second) {
      const std::string separator = text.empty() ? "" : "; ";
      if (is_done(rank)) return text + separator + "rank " + std::to_string(rank) + " has ended";
      text += separator + place(rank) + " waits for rank " + std::to_string(awaited(rank));
      rank = awaited(rank);
    }
    return text;
  }

  /// `rank 1, operation 4 `recv v6 m1 0>1``.
  std::string place(int rank) const {
    return "rank " + std::to_string(rank) + ", operation " + std::to_string(cursors_[rank]) + " `" +
           to_text(program_, next(rank)) + "`";
  }

  [[noreturn]] void fail(int rank, const std::string& problem) const {
    throw Error(ErrorKind::kInvalidArgument, "step program: " + place(rank) + " " + problem);
  }

  struct RankState {
    bool has_come = false;  ///< To the collective that is its next operation.
    Place last_meeting;
    std::map<int, std::size_t> num_meetings;  ///< By group.
    std::map<int, Place> reductions;          ///< By bucket; likewise gathers of values.
    std::map<int, Place> gathers;
  };

  const StepProgram& program_;
  std::vector<std::size_t> cursors_;
  std::vector<RankState> ranks_;
  std::vector<std::vector<GroupMeeting>> meetings_;   ///< By group.
  std::vector<std::deque<const Operation*>> posted_;  ///< By channel.
};

/// What is wrong with the channel or group of an operation of `rank`; empty where nothing is.
std::string misplaced(const StepProgram& program, int rank, const Operation& operation) {
  if (row_of(operation.kind).operand == OperandKind::kMessage) {
    const auto channel = static_cast<std::size_t>(operation.channel);
    if (operation.channel < 0 || channel >= program.channels.size()) return "has no such channel";
    const Channel& ends = program.channels[channel];
    const int end = operation.kind == OperationKind::kSend ? ends.from_rank : ends.to_rank;
    return end == rank ? "" : "is over a channel whose end is rank " + std::to_string(end);
  }
  if (!row_of(operation.kind).group) return "";
  const auto group = static_cast<std::size_t>(operation.group);
  if (operation.group < 0 || group >= program.groups.size()) return "has no such group";
  return is_member(program.groups[group], rank) ? "" : "is of a group that the rank is not in";
}

void check_places(const StepProgram& program) {
  const int num_ranks = static_cast<int>(program.ranks.size());
  for (const Channel& channel : program.channels) {
    const auto [least, most] = std::minmax(channel.from_rank, channel.to_rank);
    if (least < 0 || most >= num_ranks) {
      throw Error(ErrorKind::kInvalidArgument, "step program: a channel ends at no rank");
    }
  }
  for (const RankGroup& group : program.groups) {
    const std::set<int> ranks(group.ranks.begin(), group.ranks.end());
    const bool is_inside = ranks.empty() || (*ranks.begin() >= 0 && *ranks.rbegin() < num_ranks);
    if (!is_inside || ranks.size() != group.ranks.size()) {
      throw Error(ErrorKind::kInvalidArgument, "step program: a group repeats ranks or has none");
    }
  }
  for (int rank = 0; rank < num_ranks; ++rank) {
    for (std::size_t i = 0; i < program.ranks[rank].size(); ++i) {
      const Operation& operation = program.ranks[rank][i];
      const std::string problem = misplaced(program, rank, operation);
      if (problem.empty()) continue;
      throw Error(ErrorKind::kInvalidArgument, "step program: rank " + std::to_string(rank) +
                                                   ", operation " + std::to_string(i) + " `" +
                                                   to_text(program, operation) + "` " + problem);
    }
  }
}

}  // namespace

void run_rendezvous(const StepProgram& program) {
  check_places(program);
  Machine machine(program);
  machine.run();
  machine.expect_end();
}

std::vector<int> most_held(const StepProgram& program) {
  std::vector<int> most(program.channels.size());
  std::map<int, std::vector<int>> channels_into;
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    channels_into[program.channels[c].to_rank].push_back(static_cast<int>(c));
  }
  for (const auto& [rank, channels] : channels_into) {
    Machine slow(program);
    do {
      slow.run(rank);
      for (const int c : channels) most[c] = std::max(most[c], slow.num_held(c));
    } while (slow.step(rank));
  }
  return most;
}

}  // namespace trireme::schedule
