#include "trireme/plan/schedule/causes.h"

#include <algorithm>

#include "trireme/base/check.h"
#include "trireme/error.h"

// Every action carries a vector: by rank, how many actions are done before it begins. It is the
// largest, rank by rank, of that of the action before it on its rank and those of the actions
// whose messages it waits for, each with itself counted.

namespace trireme::schedule {
namespace {

void raise(std::vector<int>& done, const std::vector<int>& other) {
  for (std::size_t r = 0; r < done.size(); ++r) done[r] = std::max(done[r], other[r]);
}

std::size_t index_of(ChannelKind kind) { return kind == ChannelKind::kValue ? 0 : 1; }

}  // namespace

Causes::Causes(const Schedule& schedule, std::span<const Message> messages)
    : schedule_(schedule), stages_(schedule.num_stages), done_(schedule.ranks.size()) {
  read_stages(messages);
  // An action can be worked out once those that it waits for are.
  const int num_ranks = static_cast<int>(done_.size());
  for (bool is_moving = true; is_moving;) {
    is_moving = false;
    for (int rank = 0; rank < num_ranks; ++rank) {
      while (work_out_next(rank)) is_moving = true;
    }
  }
  for (int rank = 0; rank < num_ranks; ++rank) {
    TRIREME_CHECK(std::ssize(done_[rank]) == num_actions(rank), "the schedule waits for ever");
  }
}

void Causes::read_stages(std::span<const Message> messages) {
  for (const Message& message : messages) {
    if (!has_microbatch(message.kind)) continue;
    auto& sources = stages_[message.to_stage].sources[index_of(message.kind)];
    if (std::ranges::count(sources, message.from_stage) == 0) sources.push_back(message.from_stage);
  }
  for (int s = 0; s < schedule_.num_stages; ++s) {
    Stage& stage = stages_[s];
    stage.counts = {{{0}, {0}}};
    stage.places.fill(std::vector<int>(schedule_.num_microbatches, -1));
    const std::vector<Action>& actions = schedule_.ranks[rank_of(s)];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      for (std::vector<int>& counts : stage.counts) counts.push_back(counts.back());
      if (action.stage != s || !carries_messages(action.kind)) continue;
      const std::size_t kind = index_of(carried_by(action.kind));
      ++stage.counts[kind].back();
      stage.places[kind][action.microbatch] = static_cast<int>(i);
    }
  }
}

/// False where the rank has no more, or must wait for others.
bool Causes::work_out_next(int rank) {
  auto& known = done_[rank];
  if (std::ssize(known) == num_actions(rank)) return false;
  const Action& action = schedule_.ranks[rank][known.size()];
  std::vector<int> done = known.empty() ? std::vector<int>(done_.size()) : known.back();
  done[rank] = static_cast<int>(known.size());
  if (carries_messages(action.kind) && !add_sources(action, done)) return false;
  known.push_back(std::move(done));
  return true;
}

/// What the senders of the action's messages have done; false where that is not known yet.
bool Causes::add_sources(const Action& action, std::vector<int>& done) const {
  const std::size_t kind = index_of(carried_by(action.kind));
  for (const int from : stages_[action.stage].sources[kind]) {
    const int place = stages_[from].places[kind][action.microbatch];
    const int rank = rank_of(from);
    if (place < 0 || place >= std::ssize(done_[rank])) return false;
    raise(done, done_[rank][place]);
    done[rank] = std::max(done[rank], place + 1);
  }
  return true;
}

int Causes::num_taking(int stage, ChannelKind kind, int num_actions) const {
  return stages_[stage].counts[index_of(kind)][num_actions];
}

int Causes::done_before(int other, int rank, int index) const { return done_[rank][index][other]; }

std::vector<int> Causes::most_sent(int from, ChannelKind kind, int to) const {
  const int rank = rank_of(to);
  const auto& done = done_[rank_of(from)];
  std::vector<int> sent;
  std::size_t first_later = 0;  // What an action waits for grows along its rank.
  for (int index = 0; index <= num_actions(rank); ++index) {
    while (first_later < done.size() && done[first_later][rank] <= index) ++first_later;
    sent.push_back(stages_[from].counts[index_of(kind)][first_later]);
  }
  return sent;
}

}  // namespace trireme::schedule
