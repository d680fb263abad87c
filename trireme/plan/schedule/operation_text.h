#pragma once

#include <compare>
#include <map>
#include <string_view>
#include <utility>

#include "trireme/plan/schedule/step_program.h"

namespace trireme::schedule {

/// Finds channels and groups of a program by what operations' texts say of them. The program must
/// outlive it; its ranks are not looked at. Immutable.
class ProgramIndex {
 public:
  explicit ProgramIndex(const StepProgram& program);

  const StepProgram& program() const { return program_; }

  /// What a rank has of channels of a kind from stage to stage: one, or one for each of its replicas.
  struct Place {
    ChannelKind kind = ChannelKind::kValue;
    int from_stage = 0;
    int to_stage = 0;
    int rank = 0;
    int nth = 0;
    auto operator<=>(const Place&) const = default;
  };

  /// The channel over which the rank sends (or receives); -1 where it has none.
  int send_channel(const Place& place) const;
  int recv_channel(const Place& place) const;

  /// The group of `kind` that `rank` is in; -1 where it is in none.
  int group(GroupKind kind, int rank) const;

 private:
  const StepProgram& program_;
  std::map<Place, int> sends_;
  std::map<Place, int> recvs_;
  std::map<std::pair<GroupKind, int>, int> groups_;
};

/// Inverse of `to_text` for an operation of `rank`.
///
/// Errors   kInvalidArgument, naming text and rank, where it is not of that form or the rank has no
///          such channel or group.
Operation parse_operation(const ProgramIndex& index, int rank, std::string_view text);

}  // namespace trireme::schedule
