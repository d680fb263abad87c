#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/wire/collectives/device/device_backend.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/collectives/members.h"
#include "trireme/wire/collectives/message_watch.h"
#include "trireme/wire/collectives/request.h"
#include "trireme/wire/collectives/waits.h"

namespace trireme::collectives {

/// This rank among those of a new group, whose domain is open from then on.
///
/// Errors   kInvalidArgument where they are no ranks of the world, or options contradict each other.
Members make_members(transport::Endpoint& endpoint, std::vector<int> ranks,
                     const GroupOptions& options);

/// While a group is there, its messages fail with it.
struct OpenDomain {
  explicit OpenDomain(const Members& of) : members(of) {}
  ~OpenDomain() { members.endpoint.domains().close(Members::first_tag(members.id)); }
  OpenDomain(const OpenDomain&) = delete;
  OpenDomain& operator=(const OpenDomain&) = delete;

  const Members& members;
};

/// What a group is made of, and what it checks before a call.
///
/// Threads  as Group.
struct Group::State {
  State(Members of, const DeviceChoice& choice);

  /// The call has not begun, and does no harm to the next one, where that comes within a second: the
  /// others, who may wait in this one, are told.
  [[noreturn]] void refuse(const std::string& problem);

  void check_root(int root);
  void check_reducible(const Elements& data, const Reduce& by);
  void check_no_reducers(std::string_view operation);
  void check_parts(std::span<const std::int64_t> counts, std::int64_t total, std::string_view of);

  // Of messages, for which nobody waits in a sequence.
  void check_peer(int group_rank) const;
  void check_message(std::size_t bytes, const MessageOptions& options) const;

  transport::WorkPtr submit(Request request);

  const Members members;
  const OpenDomain domain;
  const bool is_on_host;
  std::atomic<std::chrono::milliseconds> deadline;
  const std::unique_ptr<Backend> backend;
  MessageWatch messages;
  std::optional<std::uint64_t> hash;  ///< For the next operation that can carry one.
  std::int64_t num_calls = 0;         ///< That became operations.
  bool has_refused = false;           ///< The call after them, as the others have been told.
};

}  // namespace trireme::collectives
