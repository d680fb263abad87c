#pragma once

#include <map>
#include <optional>
#include <vector>

#include "trireme/plan/schedule/step_program.h"
#include "trireme/plan/simulate/link_loads.h"
#include "trireme/plan/simulate/number_queue.h"
#include "trireme/plan/simulate/prices.h"
#include "trireme/plan/simulate/shared_links.h"
#include "trireme/plan/simulate/simulate.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::simulate {

/// What is between the ranks of a step that is played: messages on their channels, collectives of groups. Each channel
/// and each group does one thing after another, in the time that it takes alone, or what shared links leave of it.
///
/// Times of calls never fall.
class Transfers {
 public:
  static constexpr double kNever = SharedLinks::kNever;

  /// played_by   by rank, as for `simulate`.
  /// ready       gets the ranks that may go on because of a call.
  Transfers(const schedule::StepProgram& program, const topology::Topology& topology,
            const std::vector<int>& played_by, NumberQueue& ready);

  /// Whether a channel has room for a message; what is received ahead takes none.
  bool has_room(int channel) const;
  void send(int channel, const Price& price, double now);

  /// When the message that is received next is there; kNever where nobody knows yet.
  double message_us(int channel) const;
  void take(int channel, double now);

  /// Takes part in the group's next collective: its number.
  int join(int rank, int group, const Price& price, double now);
  double done_us(int group, int collective) const {
    return groups_[group].collectives[collective].done_us;
  }

  /// When the next transfer over a shared link is done; kNever where none is under way.
  double next_us() const { return links_ ? links_->next_us() : kNever; }
  void end_transfers(double now);

  /// All that was sent.
  std::vector<ChannelTimes> channels() && { return std::move(channels_); }

 private:
  struct Collective {
    int num_present = 0;
    double done_us = kNever;
  };
  /// Collectives of a group, in order.
  struct GroupState {
    std::vector<Collective> collectives;
    std::size_t num_transferred = 0;  ///< Over shared links.
    std::map<int, int> num_joined;    ///< By rank.
    std::map<int, int> num_played;    ///< By rank that is played: members that it is played for.
  };

  void transfer(int queue, const std::vector<SharedLinks::Load>& loads, const Price& price,
                double now);

  const schedule::StepProgram& program_;
  NumberQueue& ready_;
  std::vector<ChannelTimes> channels_;
  std::vector<GroupState> groups_;
  LinkLoads loads_;
  std::optional<SharedLinks> links_;  ///< Channels queue there by their index, groups behind these.
};

}  // namespace trireme::simulate
