#include "trireme/wire/collectives/schedule/schedule.h"

#include <array>
#include <string_view>

namespace trireme::collectives {

std::string to_text(const Range& range) {
  constexpr std::array<std::string_view, 3> kPlaces = {"data", "input", "scratch"};
  return std::string(kPlaces.at(static_cast<std::size_t>(range.place))) + "[" +
         std::to_string(range.begin) + ", " + std::to_string(range.end) + ")";
}

std::string to_text(const Step& step) {
  std::string sources;
  for (const Range& source : step.sources) {
    sources += (sources.empty() ? "" : ", ") + to_text(source);
  }
  std::string text;
  switch (step.kind) {
    case StepKind::kSend:
      text = "send " + sources + " to " + std::to_string(step.peer);
      break;
    case StepKind::kRecv:
      text = "recv " + to_text(step.target) + " from " + std::to_string(step.peer);
      break;
    case StepKind::kReduce:
      text = "reduce " + to_text(step.target) + " = " + sources;
      break;
    case StepKind::kCopy:
      text = "copy " + to_text(step.target) + " = " + sources;
      break;
  }
  for (std::size_t i = 0; i < step.after.size(); ++i) {
    text += (i == 0 ? " after " : ", ") + std::to_string(step.after[i]);
  }
  return text;
}

std::string to_text(const Schedule& schedule) {
  std::string text;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    text += std::to_string(i) + ": " + to_text(schedule.steps[i]) + "\n";
  }
  return text;
}

}  // namespace trireme::collectives
