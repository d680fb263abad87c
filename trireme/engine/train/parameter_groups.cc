#include "trireme/engine/train/parameter_groups.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "trireme/base/json.h"
#include "trireme/error.h"

namespace trireme::train {
namespace {

bool fits(const ParameterGroup& group, const std::string& parameter) {
  return fnmatch(group.names.c_str(), parameter.c_str(), 0) == 0;
}

[[noreturn]] void refuse_group(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, problem);
}

double number_in(std::string_view text, std::string_view whole) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  if (error == std::errc() && end == text.end()) return number;
  refuse_group("'" + std::string(whole) + "': '" + std::string(text) + "' is no number");
}

void take_setting(std::string_view setting, std::string_view whole, ParameterGroup& group) {
  const std::size_t equals = setting.find('=');
  const std::string_view name = setting.substr(0, equals);
  if (equals != std::string_view::npos && name == "weight-decay") {
    group.weight_decay = number_in(setting.substr(equals + 1), whole);
  } else if (equals != std::string_view::npos && name == "rate-scale") {
    group.learning_rate_scale = number_in(setting.substr(equals + 1), whole);
  } else {
    refuse_group("'" + std::string(whole) +
                 "': expected PATTERN,weight-decay=NUMBER,rate-scale=NUMBER, of " +
                 "which one of the two may be left out, got '" + std::string(setting) + "'");
  }
}

}  // namespace

parameters::UpdateRule rule_of(const OptimizerOptions& options, const std::string& parameter,
                               double learning_rate) {
  for (auto group = options.groups.rbegin(); group != options.groups.rend(); ++group) {
    if (!fits(*group, parameter)) continue;
    return {learning_rate * group->learning_rate_scale, group->weight_decay};
  }
  return {learning_rate, std::nullopt};
}

ParameterGroup parse_parameter_group(std::string_view text) {
  std::size_t comma = text.find(',');
  ParameterGroup group{.names = std::string(text.substr(0, comma))};
  if (group.names.empty() || comma == std::string_view::npos) take_setting("", text, group);
  while (comma != std::string_view::npos) {
    const std::size_t next = text.find(',', comma + 1);
    take_setting(text.substr(comma + 1, next - comma - 1), text, group);
    comma = next;
  }
  return group;
}

std::string to_text(const ParameterGroup& group) {
  std::string text = group.names;
  if (group.weight_decay) text += ",weight-decay=" + Json(*group.weight_decay).dump();
  if (group.learning_rate_scale != 1) {
    text += ",rate-scale=" + Json(group.learning_rate_scale).dump();
  }
  return text;
}

void check_groups(const std::vector<ParameterGroup>& groups, const graph::Graph& graph) {
  const auto is_number = [](double value) { return value >= 0 && std::isfinite(value); };
  for (const ParameterGroup& group : groups) {
    if (!is_number(group.weight_decay.value_or(0)) || !is_number(group.learning_rate_scale)) {
      refuse_group("parameter group '" + group.names +
                   "': weight decay and scale of the rate must be " + "numbers of 0 or more");
    }
    const auto& all = graph.parameters;
    if (std::ranges::any_of(all, [&](const auto& one) { return fits(group, one.name); })) continue;
    refuse_group("no parameter is called like '" + group.names + "'" +
                 (all.empty() ? "" : "; there are '" + all.front().name + "' and others") +
                 "; `*` stands for any characters");
  }
}

}  // namespace trireme::train
