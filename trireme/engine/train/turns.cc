#include "trireme/engine/train/turns.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "trireme/error.h"

namespace trireme::train {
namespace {

bool moves(const Turn& turn, const std::string& parameter) {
  return std::ranges::any_of(turn.parameters, [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), parameter.c_str(), 0) == 0;
  });
}

bool counts(const Turn& turn, const std::string& loss) {
  return std::ranges::find(turn.losses, loss) != turn.losses.end();
}

[[noreturn]] void refuse_turn(const Turn& turn, const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "turn '" + to_text(turn) + "': " + problem);
}

std::vector<std::string> split(std::string_view text, char mark) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(mark, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string joined(const std::vector<std::string>& parts, const std::string& between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

/// Takes `loss=NAME` or `steps=NUMBER`; false for any other.
bool take_word(const std::string& word, Turn& turn) {
  constexpr std::string_view kLoss = "loss=", kSteps = "steps=";
  if (word.starts_with(kLoss)) {
    turn.losses.push_back(word.substr(kLoss.size()));
    return true;
  }
  if (!word.starts_with(kSteps)) return false;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + kSteps.size(), end, turn.num_steps);
  return error == std::errc() && stop == end;
}

}  // namespace

const Turn* turn_of(const OptimizerOptions& options, std::int64_t step) {
  const auto& turns = options.turns;
  if (turns.empty()) return nullptr;
  const std::int64_t round =
      std::accumulate(turns.begin(), turns.end(), std::int64_t{0},
                      [](std::int64_t sum, const Turn& turn) { return sum + turn.num_steps; });
  std::int64_t at = step % round;
  for (const Turn& turn : turns) {
    if (at < turn.num_steps) return &turn;
    at -= turn.num_steps;
  }
  return nullptr;
}

std::function<bool(std::int64_t, const std::string&)> counting_losses(
    const OptimizerOptions& options) {
  if (options.turns.empty()) return {};
  return [options](std::int64_t step, const std::string& loss) {
    return counts(*turn_of(options, step), loss);
  };
}

parameters::HasGradient moved_in(const OptimizerOptions& options, std::int64_t step,
                                 parameters::HasGradient has_gradient) {
  const Turn* turn = turn_of(options, step);
  if (turn == nullptr) return has_gradient;
  return [turn = *turn, has_gradient = std::move(has_gradient)](const std::string& name) {
    return moves(turn, name) && has_gradient(name);
  };
}

Turn parse_turn(std::string_view text) {
  const std::vector<std::string> words = split(text, ',');
  Turn turn{.parameters = split(words[0], '|'), .losses = {}};
  const bool is_read = std::all_of(words.begin() + 1, words.end(),
                                   [&](const std::string& word) { return take_word(word, turn); });
  if (is_read && !words[0].empty() && !turn.losses.empty()) return turn;
  throw Error(ErrorKind::kInvalidArgument,
              "'" + std::string(text) +
                  "': expected PATTERN,loss=NAME,steps=NUMBER, of which the last may be left out "
                  "and the others be several: PATTERN|PATTERN,loss=NAME,loss=NAME");
}

std::string to_text(const Turn& turn) {
  std::string text = joined(turn.parameters, "|");
  for (const std::string& loss : turn.losses) text += ",loss=" + loss;
  return text + (turn.num_steps == 1 ? "" : ",steps=" + std::to_string(turn.num_steps));
}

void check_turns(const std::vector<Turn>& turns, const graph::Graph& graph) {
  const auto names = [](const auto& items) {
    std::vector<std::string> all;
    for (const auto& item : items) all.push_back("'" + item.name + "'");
    return joined(all, ", ");
  };
  for (const Turn& turn : turns) {
    if (turn.num_steps < 1) refuse_turn(turn, "it has no steps; expected 1 or more");
    bool has_gradient = false;
    for (const std::string& name : turn.losses) {
      const auto loss = std::ranges::find(graph.losses, name, &graph::LossOutput::name);
      if (loss == graph.losses.end()) {
        refuse_turn(turn, "no loss is called '" + name + "'; there are " + names(graph.losses));
      }
      has_gradient = has_gradient || loss->coefficient != 0;
    }
    if (!has_gradient) refuse_turn(turn, "none of its losses has a gradient");
    const auto is_moved = [&](const auto& parameter) { return moves(turn, parameter.name); };
    if (std::ranges::any_of(graph.parameters, is_moved)) continue;
    refuse_turn(turn,
                "no parameter is called like that; `*` stands for any characters, and there is " +
                    (graph.parameters.empty() ? "none" : "'" + graph.parameters[0].name + "'"));
  }
}

}  // namespace trireme::train
