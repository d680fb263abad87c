#include "trireme/wire/collectives/schedule/check.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "trireme/error.h"
#include "trireme/kernels/reduce/tree.h"

namespace trireme::collectives {

Expressions::Id Expressions::id_of(const Node& node) {
  const auto [found, is_new] = ids_.try_emplace(node, static_cast<Id>(nodes_.size()));
  if (is_new) nodes_.push_back(node);
  return found->second;
}

Expressions::Id Expressions::leaf(int rank, Place place, std::int64_t index) {
  return id_of({.rank = rank, .place = place, .index = index});
}

Expressions::Id Expressions::merged(const std::vector<Id>& sources) {
  std::vector<Id> items = sources;
  for (const kernels::Merge merge : kernels::tree_merges(static_cast<int>(items.size()))) {
    items[merge.left] = id_of({.left = items[merge.left], .right = items[merge.right]});
  }
  return items.at(0);
}

Expressions::Id Expressions::reduced(const std::vector<Id>& sources) {
  return id_of({.left = merged(sources)});
}

template <typename Visit>
void Expressions::for_leaves(Id id, Visit visit) const {
  const Node& node = nodes_[id];
  if (node.rank >= 0) return visit(node);
  for_leaves(node.left, visit);
  if (node.right >= 0) for_leaves(node.right, visit);
}

std::vector<int> Expressions::count_ranks(Id id, int num_ranks) const {
  std::vector<int> counts(num_ranks);
  for_leaves(id, [&](const Node& leaf) { ++counts[leaf.rank]; });
  return counts;
}

bool Expressions::is_of_element(Id id, std::int64_t index) const {
  bool result = true;
  for_leaves(id, [&](const Node& leaf) {
    result = result && leaf.place == Place::kData && leaf.index == index;
  });
  return result;
}

bool Expressions::is_leaf_of(Id id, int rank) const {
  return nodes_[id].rank == rank && nodes_[id].place == Place::kData;
}

std::string Expressions::text(Id id) const {
  if (id == kUnwritten) return "unwritten";
  const Node& node = nodes_[id];
  if (node.rank >= 0) {
    return (node.place == Place::kInput ? "input " : "") + std::to_string(node.rank) + ":" +
           std::to_string(node.index);
  }
  if (node.right < 0) return "round" + text(node.left);
  return "(" + text(node.left) + "+" + text(node.right) + ")";
}

namespace {

using Id = Expressions::Id;

[[noreturn]] void refuse(int rank, const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument,
              "the schedule of rank " + std::to_string(rank) + " is wrong: " + problem);
}

std::string named(const CollectiveSchedule& schedule, int step) {
  return "step " + std::to_string(step) + " (" + to_text(schedule.steps[step]) + ")";
}

bool is_transfer(const Step& step) {
  return step.kind == StepKind::kSend || step.kind == StepKind::kRecv;
}

// ---- One schedule by itself

std::int64_t size_of(Place place, const CollectiveSchedule& schedule, const CollectiveGoal& goal,
                     int rank) {
  if (place == Place::kScratch) return schedule.scratch_elements;
  if (place == Place::kPartial) return schedule.partial_elements;
  if (place == Place::kData) return goal.data_elements[rank];
  return goal.input_elements.empty() ? 0 : goal.input_elements[rank];
}

/// Whether it reads both elements and partial results, or partial results to make some, or copies
/// between the two.
bool mixes_partials(const Step& step) {
  const auto is_partial = [](const Range& range) { return range.place == Place::kPartial; };
  const auto num_partials = std::ranges::count_if(step.sources, is_partial);
  if (num_partials != 0 && num_partials != std::ssize(step.sources)) return true;
  if (step.kind == StepKind::kCopy) return is_partial(step.target) != (num_partials > 0);
  return step.kind == StepKind::kReduce && is_partial(step.target) && num_partials > 0;
}

void check_form(const CollectiveSchedule& schedule, const CollectiveGoal& goal, int rank) {
  const int num_ranks = static_cast<int>(goal.data_elements.size());
  for (int i = 0; i < static_cast<int>(schedule.steps.size()); ++i) {
    const Step& step = schedule.steps[i];
    std::vector<Range> ranges = step.sources;
    if (step.kind != StepKind::kSend) ranges.push_back(step.target);
    for (const Range& range : ranges) {
      if (range.begin < 0 || range.size() != ranges.front().size() || range.size() < 1 ||
          range.end > size_of(range.place, schedule, goal, rank)) {
        refuse(rank, named(schedule, i) + " uses memory that is not there or of other sizes");
      }
    }
    const std::size_t num_sources = step.sources.size();
    const bool has_sources = step.kind == StepKind::kRecv     ? num_sources == 0
                             : step.kind == StepKind::kReduce ? num_sources > 0
                                                              : num_sources == 1;
    if (!has_sources) refuse(rank, named(schedule, i) + " has too many sources, or too few");
    if (step.kind != StepKind::kSend && step.target.place == Place::kInput) {
      refuse(rank, named(schedule, i) + " writes the input");
    }
    if (is_transfer(step) && (step.peer < 0 || step.peer >= num_ranks || step.peer == rank)) {
      refuse(rank, named(schedule, i) + " has no such peer");
    }
    if (mixes_partials(step)) {
      refuse(rank,
             named(schedule, i) + " takes partial results for elements, or elements for them");
    }
    for (const int before : step.after) {
      if (before < 0 || before >= i) refuse(rank, named(schedule, i) + " is after a later step");
    }
  }
}

bool overlap(const Range& a, const Range& b) {
  return a.place == b.place && a.begin < b.end && b.begin < a.end;
}

bool writes_what_other_uses(const Step& writer, const Step& other) {
  if (writer.kind == StepKind::kSend) return false;
  if (other.kind != StepKind::kSend && overlap(writer.target, other.target)) return true;
  return std::ranges::any_of(other.sources,
                             [&](const Range& source) { return overlap(writer.target, source); });
}

/// A target is one of the sources or overlaps none, as combine wants it.
void check_target(const CollectiveSchedule& schedule, int index, int rank) {
  const Step& step = schedule.steps[index];
  for (const Range& source : step.sources) {
    const bool is_fit =
        !overlap(source, step.target) || (step.kind == StepKind::kReduce && source == step.target);
    if (!is_fit) refuse(rank, named(schedule, index) + " writes a part of what it reads");
  }
}

/// Steps that use the same memory, one of them writing, have an order.
void check_memory(const CollectiveSchedule& schedule, int rank) {
  const std::size_t num_steps = schedule.steps.size();
  std::vector<std::vector<bool>> before(num_steps, std::vector<bool>(num_steps));
  for (std::size_t j = 0; j < num_steps; ++j) {
    for (const int i : schedule.steps[j].after) {
      before[j][i] = true;
      for (int k = 0; k < i; ++k) before[j][k] = before[j][k] || before[i][k];
    }
    if (!is_transfer(schedule.steps[j])) check_target(schedule, static_cast<int>(j), rank);
    for (std::size_t i = 0; i < j; ++i) {
      const Step& a = schedule.steps[i];
      const Step& b = schedule.steps[j];
      if (before[j][i] || !(writes_what_other_uses(a, b) || writes_what_other_uses(b, a))) continue;
      refuse(rank, named(schedule, static_cast<int>(j)) + " may run while " +
                       named(schedule, static_cast<int>(i)) + " uses the same memory");
    }
  }
}

// ---- All of them together

/// Runs the schedules on formulas. As nothing overlaps, one order of the steps stands for all.
class Simulation {
 public:
  Simulation(std::span<const CollectiveSchedule> schedules, const CollectiveGoal& goal)
      : schedules_(schedules), goal_(goal), ranks_(schedules.size()) {
    for (int rank = 0; rank < num_ranks(); ++rank) prepare(rank);
  }

  void run() {
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      for (int rank = 0; rank < num_ranks(); ++rank) has_moved |= advance(rank);
    }
    for (int rank = 0; rank < num_ranks(); ++rank) refuse_if_stuck(rank);
  }

  void check_results() {
    for (int rank = 0; rank < num_ranks(); ++rank) {
      for (std::int64_t i = 0; i < goal_.data_elements[rank]; ++i) check_result(rank, i);
    }
  }

 private:
  struct Rank {
    std::map<Place, std::vector<Id>> memory;
    std::vector<bool> has_ended;
    std::map<int, std::deque<int>> sends;  ///< By peer: steps not ended.
    std::map<int, std::deque<int>> recvs;
  };

  int num_ranks() const { return static_cast<int>(schedules_.size()); }
  const Step& step_of(int rank, int index) const { return schedules_[rank].steps[index]; }

  void prepare(int rank) {
    Rank& state = ranks_[rank];
    for (const Place place : {Place::kData, Place::kInput}) {
      const std::int64_t size = size_of(place, schedules_[rank], goal_, rank);
      for (std::int64_t i = 0; i < size; ++i) {
        state.memory[place].push_back(expressions_.leaf(rank, place, i));
      }
    }
    for (const Place place : {Place::kScratch, Place::kPartial}) {
      state.memory[place].assign(size_of(place, schedules_[rank], goal_, rank),
                                 Expressions::kUnwritten);
    }
    state.has_ended.assign(schedules_[rank].steps.size(), false);
    for (int i = 0; i < static_cast<int>(schedules_[rank].steps.size()); ++i) {
      const Step& step = step_of(rank, i);
      if (step.kind == StepKind::kSend) state.sends[step.peer].push_back(i);
      if (step.kind == StepKind::kRecv) state.recvs[step.peer].push_back(i);
    }
  }

  bool is_ready(int rank, int index) const {
    return std::ranges::all_of(step_of(rank, index).after,
                               [&](int before) { return ranks_[rank].has_ended[before]; });
  }

  bool advance(int rank) {
    bool has_moved = false;
    for (int i = 0; i < static_cast<int>(schedules_[rank].steps.size()); ++i) {
      if (ranks_[rank].has_ended[i] || !is_ready(rank, i)) continue;
      const Step& step = step_of(rank, i);
      if (is_transfer(step)) {
        has_moved |= step.kind == StepKind::kSend && try_transfer(rank, i);
      } else {
        compute(rank, i);
        has_moved = true;
      }
    }
    return has_moved;
  }

  /// The send is ready; so must its recv be, and both the next of their kind.
  bool try_transfer(int from, int send) {
    const int to = step_of(from, send).peer;
    std::deque<int>& sends = ranks_[from].sends[to];
    std::deque<int>& recvs = ranks_[to].recvs[from];
    if (sends.front() != send || recvs.empty() || !is_ready(to, recvs.front())) return false;
    const int recv = recvs.front();
    const Range& source = step_of(from, send).sources.front();
    const Range& target = step_of(to, recv).target;
    if (source.size() != target.size() ||
        (source.place == Place::kPartial) != (target.place == Place::kPartial)) {
      refuse(from, named(schedules_[from], send) + " meets " + named(schedules_[to], recv) +
                       " of rank " + std::to_string(to));
    }
    write(to, target, read(from, send, source));
    sends.pop_front();
    recvs.pop_front();
    ranks_[from].has_ended[send] = true;
    ranks_[to].has_ended[recv] = true;
    return true;
  }

  void compute(int rank, int index) {
    const Step& step = step_of(rank, index);
    std::vector<std::vector<Id>> sources;
    for (const Range& source : step.sources) sources.push_back(read(rank, index, source));
    std::vector<Id> result = sources.front();
    for (std::size_t i = 0; step.kind == StepKind::kReduce && i < result.size(); ++i) {
      std::vector<Id> items;
      for (const auto& source : sources) items.push_back(source[i]);
      check_ranks(rank, index, items);
      result[i] = combined(items, step.target.place);
    }
    write(rank, step.target, result);
    ranks_[rank].has_ended[index] = true;
  }

  /// Partial results are not rounded.
  Id combined(const std::vector<Id>& items, Place target) {
    return goal_.bits == Bits::kRoundedOnce && target != Place::kPartial
               ? expressions_.reduced(items)
               : expressions_.merged(items);
  }

  /// What is reduced once may be scaled: then by the scales of ranks from the step's first on.
  void check_ranks(int rank, int index, const std::vector<Id>& items) const {
    const Step& step = step_of(rank, index);
    const bool has_elements = step.sources.front().place != Place::kPartial;
    if (goal_.bits != Bits::kRoundedOnce || !has_elements) return;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const int of_rank = step.first_rank + static_cast<int>(i);
      if (expressions_.is_leaf_of(items[i], of_rank)) continue;
      refuse(rank, named(schedules_[rank], index) + " takes " + expressions_.text(items[i]) +
                       " for an element of rank " + std::to_string(of_rank));
    }
  }

  std::vector<Id> read(int rank, int index, const Range& range) {
    const std::vector<Id>& memory = ranks_[rank].memory[range.place];
    std::vector<Id> result(memory.begin() + range.begin, memory.begin() + range.end);
    if (std::ranges::count(result, Expressions::kUnwritten) > 0) {
      refuse(rank, named(schedules_[rank], index) + " reads what nothing has written");
    }
    return result;
  }

  void write(int rank, const Range& range, const std::vector<Id>& values) {
    std::ranges::copy(values, ranks_[rank].memory[range.place].begin() + range.begin);
  }

  void refuse_if_stuck(int rank) const {
    const auto& has_ended = ranks_[rank].has_ended;
    const auto stuck = std::ranges::find(has_ended, false);
    if (stuck == has_ended.end()) return;
    refuse(rank, named(schedules_[rank], static_cast<int>(stuck - has_ended.begin())) +
                     " never ends: a deadlock, or the other side has no such step");
  }

  void check_result(int rank, std::int64_t index) {
    const Wanted wanted = goal_.wanted(rank, index);
    const Id found = ranks_[rank].memory[Place::kData][index];
    if (is_as_wanted(wanted, found, index)) return;
    refuse(rank, "element " + std::to_string(index) + " ends as " + expressions_.text(found));
  }

  bool is_as_wanted(const Wanted& wanted, Id found, std::int64_t index) {
    if (wanted.kind == Wanted::Kind::kCopy) {
      return found == expressions_.leaf(wanted.rank, wanted.place, wanted.index);
    }
    if (wanted.kind == Wanted::Kind::kAllHeard) {
      return !std::ranges::count(expressions_.count_ranks(found, num_ranks()), 0);
    }
    if (goal_.bits == Bits::kAny) return is_any_reduction(found, index);
    std::vector<Id> leaves;
    for (int r = 0; r < num_ranks() - goal_.num_reducers; ++r) {
      leaves.push_back(expressions_.leaf(r, Place::kData, index));
    }
    return found == (leaves.size() == 1 ? leaves.front() : combined(leaves, Place::kData));
  }

  bool is_any_reduction(Id found, std::int64_t index) {
    const std::vector<int> counts = expressions_.count_ranks(found, num_ranks());
    const Id first = first_reduction_.try_emplace(index, found).first->second;
    return found == first && expressions_.is_of_element(found, index) &&
           std::ranges::count(counts, 1) == num_ranks();
  }

  const std::span<const CollectiveSchedule> schedules_;
  const CollectiveGoal& goal_;
  std::vector<Rank> ranks_;
  Expressions expressions_;
  std::map<std::int64_t, Id> first_reduction_;  ///< By element: of the lowest rank that has it.
};

}  // namespace

void check_schedules(std::span<const CollectiveSchedule> schedules, const CollectiveGoal& goal) {
  for (int rank = 0; rank < static_cast<int>(schedules.size()); ++rank) {
    check_form(schedules[rank], goal, rank);
    check_memory(schedules[rank], rank);
  }
  Simulation simulation(schedules, goal);
  simulation.run();
  simulation.check_results();
}

}  // namespace trireme::collectives
