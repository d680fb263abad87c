#include "trireme/plan/schedule/step_program_show.h"

#include <vector>

#include "trireme/plan/graph/text_table.h"
#include "trireme/plan/schedule/operation_text.h"

namespace trireme::schedule {
namespace {

using graph::Table;

std::string channels_text(const StepProgram& program) {
  std::vector<int> num_messages(program.channels.size());
  for (const auto& operations : program.ranks) {
    for (const Operation& operation : operations) {
      if (operation.kind == OperationKind::kSend) ++num_messages.at(operation.channel);
    }
  }
  Table table(
      {"kind", ">from stage", ">to stage", ">from rank", ">to rank", ">messages", ">limit"});
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    const Channel& channel = program.channels[c];
    table.add({std::string(kChannelKindNames[static_cast<std::size_t>(channel.kind)]),
               std::to_string(channel.from_stage), std::to_string(channel.to_stage),
               std::to_string(channel.from_rank), std::to_string(channel.to_rank),
               std::to_string(num_messages[c]),
               channel.limit == 0 ? "-" : std::to_string(channel.limit)});
  }
  return table.is_empty() ? "" : "\nchannels\n" + table.text();
}

std::string groups_text(const StepProgram& program) {
  Table table({"kind", ">index", "ranks"});
  for (const RankGroup& group : program.groups) {
    std::string ranks;
    for (const int rank : group.ranks) ranks += (ranks.empty() ? "" : " ") + std::to_string(rank);
    table.add({std::string(kGroupKindNames[static_cast<std::size_t>(group.kind)]),
               std::to_string(group.index), ranks});
  }
  return table.is_empty() ? "" : "\ngroups\n" + table.text();
}

}  // namespace

std::string show(const StepProgram& program) {
  std::string text = "step program of " + std::to_string(program.ranks.size()) + " ranks, " +
                     std::to_string(program.num_microbatches) + " microbatches a replica\n" +
                     channels_text(program) + groups_text(program);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    text += "\nrank " + std::to_string(rank) + "\n";
    for (const Operation& operation : program.ranks[rank]) {
      text += "  " + to_text(program, operation) + "\n";
    }
  }
  return text;
}

}  // namespace trireme::schedule
