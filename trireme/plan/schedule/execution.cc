#include "trireme/plan/schedule/execution.h"

#include <algorithm>
#include <map>

namespace trireme::schedule {
namespace {

/// When the outputs of actions were there; of a backward under the name of its input part.
class Outputs {
 public:
  void add(Action action, std::int64_t time) {
    if (action.kind == ActionKind::kBackward) action.kind = ActionKind::kBackwardInput;
    times_.emplace(action, time);
  }

  /// When all that `action` needs was there; nothing where some of it is not.
  std::optional<std::int64_t> ready(const Action& action, int num_stages) const {
    std::int64_t time = 0;
    for (const Action& need : needs(action, num_stages)) {
      const auto found = times_.find(need);
      if (found == times_.end()) return std::nullopt;
      time = std::max(time, found->second);
    }
    return time;
  }

 private:
  std::map<Action, std::int64_t> times_;
};

}  // namespace

int UnitTimes::of(ActionKind kind) const {
  switch (kind) {
    case ActionKind::kForward:
      return forward;
    case ActionKind::kBackward:
      return backward;
    case ActionKind::kBackwardInput:
      return backward_input;
    case ActionKind::kBackwardWeight:
      return backward_weight;
  }
  return forward;
}

std::int64_t Execution::end() const {
  std::int64_t last = 0;
  for (const std::vector<Span>& spans : ranks) {
    if (!spans.empty()) last = std::max(last, spans.back().end);
  }
  return last;
}

std::vector<Action> needs(const Action& action, int num_stages) {
  const auto [kind, stage, microbatch] = action;
  if (kind == ActionKind::kForward) {
    if (stage == 0) return {};
    return {{ActionKind::kForward, stage - 1, microbatch}};
  }
  if (kind == ActionKind::kBackwardWeight) {
    return {{ActionKind::kBackwardInput, stage, microbatch}};
  }
  std::vector<Action> all = {{ActionKind::kForward, stage, microbatch}};
  if (stage < num_stages - 1) all.push_back({ActionKind::kBackwardInput, stage + 1, microbatch});
  return all;
}

Execution execute(const Schedule& schedule, const UnitTimes& times) {
  Execution execution;
  execution.ranks.resize(schedule.ranks.size());
  Outputs outputs;
  for (bool is_moving = true; is_moving;) {
    is_moving = false;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      std::vector<Span>& spans = execution.ranks[rank];
      while (spans.size() < schedule.ranks[rank].size()) {
        const Action& action = schedule.ranks[rank][spans.size()];
        const std::optional<std::int64_t> ready = outputs.ready(action, schedule.num_stages);
        if (!ready) break;
        const std::int64_t begin = std::max(*ready, spans.empty() ? 0 : spans.back().end);
        spans.push_back({begin, begin + times.of(action.kind)});
        outputs.add(action, spans.back().end);
        is_moving = true;
      }
    }
  }
  return execution;
}

std::vector<int> most_in_flight(const Schedule& schedule) {
  std::vector<int> now(schedule.num_stages);
  std::vector<int> most(schedule.num_stages);
  for (const std::vector<Action>& actions : schedule.ranks) {
    for (const auto& [kind, stage, microbatch] : actions) {
      if (kind == ActionKind::kForward) most[stage] = std::max(most[stage], ++now[stage]);
      if (kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight) --now[stage];
    }
  }
  return most;
}

namespace {

/// Where a text stands in a row of characters.
struct Columns {
  std::size_t begin = 0;
  std::size_t size = 0;
};

class GridPrinter {
 public:
  GridPrinter(const Schedule& schedule, const GridOptions& options)
      : schedule_(schedule), options_(options) {
    place_all();
    for (const std::vector<Action>& actions : schedule.ranks) {
      for (const Action& action : actions) unit_ = std::max(unit_, label(action).size());
    }
  }

  std::string print() const {
    std::string text;
    const std::size_t number_width = std::to_string(schedule_.ranks.size()).size();
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      std::string number = std::to_string(rank);
      number.insert(0, number_width - number.size(), ' ');
      const std::string head = "rank " + number;
      text += head + " | " + cut(row(rank)) + "\n";
      if (!options_.mark || options_.mark->rank != static_cast<int>(rank)) continue;
      text += std::string(head.size(), ' ') + " | " + cut(underline()) + "\n";
    }
    return text;
  }

 private:
  /// Times of all actions; those that the execution did not reach follow one another.
  void place_all() {
    spans_ = execute(schedule_, options_.times).ranks;
    for (std::size_t rank = 0; rank < spans_.size(); ++rank) {
      std::vector<Span>& spans = spans_[rank];
      while (spans.size() < schedule_.ranks[rank].size()) {
        const std::int64_t begin = spans.empty() ? 0 : spans.back().end;
        const Action& action = schedule_.ranks[rank][spans.size()];
        spans.push_back({begin, begin + options_.times.of(action.kind)});
      }
      if (!spans.empty()) end_ = std::max(end_, spans.back().end);
    }
  }

  bool is_stage_the_rank() const {
    return schedule_.ranks.size() == static_cast<std::size_t>(schedule_.num_stages) &&
           schedule_.positions.empty();
  }

  std::string label(const Action& action) const {
    const std::string text = to_text(action);
    return is_stage_the_rank() ? text.substr(text.find_first_of("FBIW")) : text;
  }

  Columns columns(const Span& span) const {
    const auto units = static_cast<std::size_t>(span.end - span.begin);
    return {static_cast<std::size_t>(span.begin) * (unit_ + 1), units * (unit_ + 1) - 1};
  }

  std::string row(std::size_t rank) const {
    std::string text;
    for (std::int64_t t = 0; t < end_; ++t) text += std::string(unit_, '.') + " ";
    for (std::size_t i = 0; i < spans_[rank].size(); ++i) {
      const auto [begin, size] = columns(spans_[rank][i]);
      std::string cell = label(schedule_.ranks[rank][i]);
      // Only what takes longer than a unit is drawn through, so that 1F1 does not become 1F1-.
      cell.resize(size, size > unit_ ? '-' : ' ');
      text.replace(begin, size, cell);
    }
    if (!text.empty()) text.pop_back();
    return text;
  }

  Columns marked() const {
    const std::vector<Span>& spans = spans_[options_.mark->rank];
    const auto index = static_cast<std::size_t>(options_.mark->index);
    if (index < spans.size()) return columns(spans[index]);
    return {spans.empty() ? 0 : columns(spans.back()).begin + columns(spans.back()).size + 1,
            unit_};
  }

  std::string underline() const {
    const auto [begin, size] = marked();
    return std::string(begin, ' ') + std::string(std::min(size, unit_), '^');
  }

  /// The part of a row that is shown.
  std::string cut(const std::string& row) const {
    const auto width = static_cast<std::size_t>(options_.max_columns);
    if (width == 0) return row;
    std::size_t begin = 0;
    if (options_.mark && marked().begin + unit_ > width) {
      begin = marked().begin + unit_ - width / 2;
    }
    return begin < row.size() ? row.substr(begin, width) : "";
  }

  const Schedule& schedule_;
  const GridOptions& options_;
  std::vector<std::vector<Span>> spans_;
  std::int64_t end_ = 0;
  std::size_t unit_ = 2;  ///< Characters of one unit of time, without the space after it.
};

}  // namespace

std::string grid(const Schedule& schedule, const GridOptions& options) {
  return GridPrinter(schedule, options).print();
}

}  // namespace trireme::schedule
