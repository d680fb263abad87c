#include "trireme/plan/schedule/whole_stages.h"

#include <algorithm>
#include <cstddef>

namespace trireme::schedule {
namespace {

struct Run {
  std::size_t begin = 0;  ///< Place of its first action.
  int stage = 0;
};

std::vector<Run> runs_of(const std::vector<Action>& actions) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (runs.empty() || runs.back().stage != actions[i].stage)
      runs.push_back({i, actions[i].stage});
  }
  return runs;
}

bool contains(const std::vector<int>& stages, int stage) {
  return std::ranges::find(stages, stage) != stages.end();
}

}  // namespace

std::vector<ValueMoves> value_moves(const std::vector<Action>& actions) {
  std::vector<ValueMoves> moves(actions.size() + 1);
  const std::vector<Run> runs = runs_of(actions);
  std::vector<int> held, awaited;  // Whole or on their way; whole.
  const auto give_up = [&](ValueMoves& at, const std::vector<int>& wanted) {
    for (const int stage : held) {
      if (!contains(wanted, stage)) at.reshard.push_back(stage);
    }
    const auto is_given_up = [&](int stage) { return contains(at.reshard, stage); };
    std::erase_if(held, is_given_up);
    std::erase_if(awaited, is_given_up);
  };
  for (std::size_t k = 0; k < runs.size(); ++k) {
    ValueMoves& at = moves[runs[k].begin];
    std::vector<int> wanted = {runs[k].stage};
    if (k + 1 < runs.size()) wanted.push_back(runs[k + 1].stage);
    give_up(at, wanted);
    for (const int stage : wanted) {
      if (contains(held, stage)) continue;
      at.unshard.push_back(stage);
      held.push_back(stage);
    }
    if (contains(awaited, runs[k].stage)) continue;
    at.await.push_back(runs[k].stage);
    awaited.push_back(runs[k].stage);
  }
  give_up(moves.back(), {});
  return moves;
}

}  // namespace trireme::schedule
