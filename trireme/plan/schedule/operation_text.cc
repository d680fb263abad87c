#include <array>
#include <string_view>

#include "trireme/plan/schedule/step_program.h"

namespace trireme::schedule {
namespace {

// Indexed by OperationKind.
constexpr std::array<std::string_view, 10> kWords = {
    "recv", "compute", "send", "reduce", "exchange", "join", "tie sum", "commit", "norm", "update"};

std::string path_text(const Channel& channel) {
  return std::to_string(channel.from_stage) + ">" + std::to_string(channel.to_stage);
}

/// What is sent or received: `v17 m3 0>1`, `site 4 2>0`.
std::string message_text(const StepProgram& program, const Operation& operation) {
  const std::string item = std::to_string(operation.item);
  const std::string microbatch = " m" + std::to_string(operation.microbatch) + " ";
  const auto index = static_cast<std::size_t>(operation.channel);
  if (operation.channel < 0 || index >= program.channels.size()) {
    return "item " + item + microbatch + "on no channel (" + std::to_string(operation.channel) +
           ")";
  }
  const Channel& channel = program.channels[index];
  switch (channel.kind) {
    case ChannelKind::kValue:
      return "v" + item + microbatch + path_text(channel);
    case ChannelKind::kGradient:
      return "g" + item + microbatch + path_text(channel);
    case ChannelKind::kTieGradient:
      return "site " + item + " " + path_text(channel);
    case ChannelKind::kTieValue:
      return "parameter " + item + " " + path_text(channel);
  }
  return "";
}

}  // namespace

std::string to_text(const StepProgram& program, const Operation& operation) {
  const std::string word(kWords[static_cast<std::size_t>(operation.kind)]);
  switch (operation.kind) {
    case OperationKind::kRecv:
    case OperationKind::kSend:
      return word + " " + message_text(program, operation);
    case OperationKind::kCompute:
      return word + " " + to_text(operation.action);
    case OperationKind::kReduce:
    case OperationKind::kJoin:
      return word + " bucket " + std::to_string(operation.item);
    default:
      return word;
  }
}

}  // namespace trireme::schedule
