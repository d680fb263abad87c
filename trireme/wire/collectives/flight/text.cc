#include <algorithm>
#include <cstdio>

#include "trireme/wire/collectives/flight/record.h"

namespace trireme::collectives {
namespace {

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// `all_reduce of 1000 f32 by sum`, `broadcast of 12 bytes from 1`.
std::string what_of(const FlightOperation& operation) {
  std::string text(to_text(operation.operation));
  if (operation.operation == Operation::kBarrier) return text;
  if (reduces(operation.operation)) {
    text += " of " + std::to_string(operation.count) + " " + std::string(to_text(operation.dtype)) +
            " by " + std::string(kernels::to_text(operation.reduce));
  } else {
    text += " of " + std::to_string(operation.bytes) + " bytes";
  }
  if (has_root(operation.operation)) text += ", root " + std::to_string(operation.root);
  return text;
}

std::string time_text(const std::optional<std::chrono::microseconds>& time) {
  return time ? number("%.0f", static_cast<double>(time->count())) : "-";
}

std::string late_text(const FlightOperation& operation) {
  if (!operation.late_rank) return "-";
  return std::to_string(*operation.late_rank) + " (" + std::to_string(operation.waited.count()) +
         " us)";
}

std::string row(const std::string& sequence, const std::string& state, const std::string& called,
                const std::string& started, const std::string& ended, const std::string& late,
                const std::string& what) {
  char text[512];
  std::snprintf(text, sizeof text, "%8s  %-7s  %12s  %12s  %12s  %16s  %s\n", sequence.c_str(),
                state.c_str(), called.c_str(), started.c_str(), ended.c_str(), late.c_str(),
                what.c_str());
  return text;
}

}  // namespace

std::string_view to_text(FlightState state) {
  switch (state) {
    case FlightState::kCalled:
      return "called";
    case FlightState::kStarted:
      return "started";
    case FlightState::kEnded:
      return "ended";
    case FlightState::kFailed:
      return "failed";
  }
  return "unknown";
}

std::string to_text(const FlightOperation& operation) {
  std::string text = "operation " + std::to_string(operation.sequence) + ": " + what_of(operation) +
                     ": " + std::string(to_text(operation.state)) + "; called " +
                     time_text(operation.called) + " us, started " + time_text(operation.started) +
                     " us, ended " + time_text(operation.ended) + " us";
  if (operation.late_rank) text += "; waited longest for " + late_text(operation);
  return text;
}

std::string to_text(const FlightRecord& record, std::size_t most) {
  std::string text = "rank " + std::to_string(record.world_rank) + " of " +
                     std::to_string(record.world_size) + " on " + record.host + ", process " +
                     std::to_string(record.process) + ", group '" + record.group +
                     "': group rank " + std::to_string(record.group_rank) + " of " +
                     std::to_string(record.lateness.size()) + "\n";
  text += row("number", "state", "called us", "started us", "ended us", "waited for", "operation");
  const std::size_t shown = std::min(most, record.operations.size());
  for (std::size_t i = record.operations.size() - shown; i < record.operations.size(); ++i) {
    const FlightOperation& operation = record.operations[i];
    text += row(std::to_string(operation.sequence), std::string(to_text(operation.state)),
                time_text(operation.called), time_text(operation.started),
                time_text(operation.ended), late_text(operation), what_of(operation));
  }
  if (record.operations.empty()) text += "  no operation yet\n";
  for (std::size_t rank = 0; rank < record.lateness.size(); ++rank) {
    const Lateness& lateness = record.lateness[rank];
    if (lateness.num_operations == 0) continue;
    text += "group rank " + std::to_string(rank) + " was the last of " +
            std::to_string(lateness.num_operations) + " operations, " +
            number("%.1f", lateness.mean.count()) + " us on average\n";
  }
  return text;
}

}  // namespace trireme::collectives
