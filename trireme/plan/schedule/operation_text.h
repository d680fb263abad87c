#pragma once

#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "trireme/plan/schedule/step_program.h"

namespace trireme::schedule {

/// Finds channels and groups of a program by what operations' texts say of them. The program must
/// outlive it; its ranks are not looked at. Immutable.
class ProgramIndex {
 public:
  explicit ProgramIndex(const StepProgram& program);

  const StepProgram& program() const { return program_; }

  /// The channel over which `rank` sends (or receives) from stage to stage; -1 where it has none.
  int send_channel(ChannelKind kind, int from_stage, int to_stage, int rank) const;
  int recv_channel(ChannelKind kind, int from_stage, int to_stage, int rank) const;

  /// The group of `kind` that `rank` is in; -1 where it is in none.
  int group(GroupKind kind, int rank) const;

 private:
  using ChannelKey = std::tuple<ChannelKind, int, int, int>;

  const StepProgram& program_;
  std::map<ChannelKey, int> sends_;
  std::map<ChannelKey, int> recvs_;
  std::map<std::pair<GroupKind, int>, int> groups_;
};

/// Inverse of `to_text` for an operation of `rank`.
///
/// Errors   kInvalidArgument, naming text and rank, where it is not of that form or the rank has no
///          such channel or group.
Operation parse_operation(const ProgramIndex& index, int rank, std::string_view text);

}  // namespace trireme::schedule
