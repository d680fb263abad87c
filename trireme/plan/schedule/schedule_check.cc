#include "trireme/plan/schedule/schedule_check.h"

#include <map>
#include <set>

#include "trireme/error.h"
#include "trireme/plan/schedule/execution.h"

namespace trireme::schedule {
namespace {

/// How far a stage has come: the microbatch that each kind of work must take next.
struct Progress {
  int forward = 0;
  int input = 0;   ///< B or I.
  int weight = 0;  ///< B or W.
};

std::string expected(int next, int count, ActionKind kind, int stage) {
  if (next >= count) return "stage " + std::to_string(stage) + " has done all of these";
  return "expected " + to_text(Action{kind, stage, next});
}

/// Judges the actions of one rank without looking at the others.
class RankOrder {
 public:
  RankOrder(const Schedule& schedule, int rank) : schedule_(schedule), rank_(rank) {}

  std::optional<Flaw> flaw() {
    const std::vector<Action>& actions = schedule_.ranks[rank_];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const std::string problem = take(actions[i]);
      if (!problem.empty()) return at(i, to_text(actions[i]) + ": " + problem);
    }
    const std::string problem = missing();
    return problem.empty() ? std::nullopt : at(actions.size(), problem);
  }

 private:
  std::optional<Flaw> at(std::size_t index, const std::string& problem) const {
    return Flaw{Cell{rank_, static_cast<int>(index)}, problem};
  }

  /// What is wrong with doing `action` next; empty where nothing is.
  std::string take(const Action& action) {
    const auto [kind, stage, microbatch] = action;
    if (stage < 0 || stage >= schedule_.num_stages) {
      return "there are " + std::to_string(schedule_.num_stages) + " stages, from 0";
    }
    if (microbatch < 0 || microbatch >= schedule_.num_microbatches) {
      return "there are " + std::to_string(schedule_.num_microbatches) + " microbatches, from 0";
    }
    if (schedule_.rank_of(stage) != rank_) {
      return "stage " + std::to_string(stage) + " runs on rank " +
             std::to_string(schedule_.rank_of(stage));
    }
    return take_in_order(action, stages_[stage]);
  }

  std::string take_in_order(const Action& action, Progress& progress) const {
    const auto [kind, stage, microbatch] = action;
    const bool is_forward = kind == ActionKind::kForward;
    const bool has_input = kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput;
    const bool has_weight = kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight;
    const int count = schedule_.num_microbatches;
    if (is_forward && microbatch != progress.forward) {
      return expected(progress.forward, count, kind, stage);
    }
    if (has_input && microbatch >= progress.forward) return "its forward has not run";
    if (has_input && microbatch != progress.input) {
      return expected(progress.input, count, kind, stage);
    }
    if (has_weight && microbatch != progress.weight) {
      return expected(progress.weight, count, kind, stage);
    }
    if (kind == ActionKind::kBackwardWeight && microbatch >= progress.input) {
      return "its input part has not run";
    }
    progress.forward += is_forward;
    progress.input += has_input;
    progress.weight += has_weight;
    return "";
  }

  /// The first action that the rank lacks at its end; empty where it lacks none.
  std::string missing() const {
    const int count = schedule_.num_microbatches;
    for (int stage = 0; stage < schedule_.num_stages; ++stage) {
      if (schedule_.rank_of(stage) != rank_) continue;
      const auto found = stages_.find(stage);
      const Progress progress = found == stages_.end() ? Progress{} : found->second;
      const std::pair<ActionKind, int> parts[] = {{ActionKind::kForward, progress.forward},
                                                  {ActionKind::kBackward, progress.input},
                                                  {ActionKind::kBackwardWeight, progress.weight}};
      for (const auto& [kind, done] : parts) {
        if (done < count) return "the rank ends without " + to_text(Action{kind, stage, done});
      }
    }
    return "";
  }

  const Schedule& schedule_;
  int rank_;
  std::map<int, Progress> stages_;
};

std::optional<Flaw> size_flaw(const Schedule& schedule) {
  const std::size_t num_ranks = schedule.ranks.size();
  if (schedule.num_stages < 1 || schedule.num_microbatches < 1) {
    return Flaw{{}, "it needs at least one stage and one microbatch"};
  }
  if (num_ranks < 1 || num_ranks > static_cast<std::size_t>(schedule.num_stages)) {
    return Flaw{{},
                "it has " + std::to_string(num_ranks) + " ranks for " +
                    std::to_string(schedule.num_stages) + " stages; each rank needs one"};
  }
  const std::vector<int>& positions = schedule.positions;
  if (positions.empty()) return std::nullopt;
  if (std::ssize(positions) != schedule.num_stages) {
    return Flaw{{},
                "it has positions of " + std::to_string(positions.size()) + " stages, expected " +
                    std::to_string(schedule.num_stages)};
  }
  const std::set<int> used(positions.begin(), positions.end());
  if (used.size() != num_ranks || *used.begin() != 0 || *used.rbegin() + 1 != std::ssize(used)) {
    return Flaw{{},
                "its stages stand at " + std::to_string(used.size()) + " positions, from " +
                    std::to_string(*used.begin()) + " to " + std::to_string(*used.rbegin()) +
                    "; they must use those from 0 to " + std::to_string(num_ranks - 1)};
  }
  return std::nullopt;
}

/// The circle of ranks that wait for each other, from `rank` on.
std::string waiting_circle(const Schedule& schedule, const Execution& execution, int rank) {
  std::set<int> seen;
  std::string text;
  while (seen.insert(rank).second) {
    const Action& action = schedule.ranks[rank][execution.ranks[rank].size()];
    // Its own stage's part is in order, so it waits for the last need: another stage's.
    const Action need = needs(action, schedule.num_stages).back();
    const int other = schedule.rank_of(need.stage);
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(rank) + " waits at " +
            to_text(action) + " for " +
            (need.kind == ActionKind::kForward ? "forward " : "backward ") +
            std::to_string(need.microbatch) + " of stage " + std::to_string(need.stage);
    rank = other;
  }
  return text;
}

std::optional<Flaw> deadlock(const Schedule& schedule) {
  const Execution execution = execute(schedule);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const std::size_t done = execution.ranks[rank].size();
    if (done == schedule.ranks[rank].size()) continue;
    const int first = static_cast<int>(rank);
    return Flaw{Cell{first, static_cast<int>(done)}, waiting_circle(schedule, execution, first)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Flaw> find_flaw(const Schedule& schedule) {
  if (auto flaw = size_flaw(schedule)) return flaw;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    if (auto flaw = RankOrder(schedule, static_cast<int>(rank)).flaw()) return flaw;
  }
  return deadlock(schedule);
}

void check(const Schedule& schedule) {
  const std::optional<Flaw> flaw = find_flaw(schedule);
  if (!flaw) return;
  std::string message = "schedule: " + flaw->problem;
  if (flaw->cell) {
    message = "schedule: rank " + std::to_string(flaw->cell->rank) + ", action " +
              std::to_string(flaw->cell->index) + ": " + flaw->problem + "\n" +
              grid(schedule, {.mark = flaw->cell, .max_columns = 100});
  }
  throw Error(ErrorKind::kInvalidArgument, message);
}

}  // namespace trireme::schedule
