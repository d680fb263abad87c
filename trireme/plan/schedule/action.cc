#include "trireme/plan/schedule/action.h"

#include <charconv>
#include <optional>

#include "trireme/error.h"

namespace trireme::schedule {
namespace {

constexpr std::string_view kLetters = "FBIW";  // indexed by ActionKind

/// Takes a number off the front of `text`.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<Action> take_action(std::string_view text) {
  const std::optional<int> stage = take_number(text);
  const std::size_t kind = text.empty() ? std::string_view::npos : kLetters.find(text.front());
  if (!stage || kind == std::string_view::npos) return std::nullopt;
  text.remove_prefix(1);
  const std::optional<int> microbatch = take_number(text);
  if (!microbatch || !text.empty() || *stage < 0 || *microbatch < 0) return std::nullopt;
  return Action{static_cast<ActionKind>(kind), *stage, *microbatch};
}

}  // namespace

std::string to_text(const Action& action) {
  return std::to_string(action.stage) + kLetters[static_cast<std::size_t>(action.kind)] +
         std::to_string(action.microbatch);
}

Action parse_action(std::string_view text) {
  const std::optional<Action> action = take_action(text);
  // Each action has one text: no leading zeros.
  if (action && to_text(*action) == text) return *action;
  throw Error(ErrorKind::kInvalidArgument,
              "'" + std::string(text.substr(0, 80)) +
                  "' is not an action; expected <stage><F|B|I|W><microbatch>, as in 2F0");
}

}  // namespace trireme::schedule
