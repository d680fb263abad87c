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

#include "trireme/wire/collectives/backend.h"
#include "trireme/wire/collectives/device/device_backend.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/collectives/members.h"
#include "trireme/wire/collectives/message_watch.h"

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

  /// The call has not begun, and does no harm to the next one.
  [[noreturn]] void refuse(const std::string& problem) const;

  void check_root(int root) const;
  void check_reducible(const Elements& data, const Reduce& by) const;
  void check_no_reducers(std::string_view operation) const;
  void check_parts(std::span<const std::int64_t> counts, std::int64_t total,
                   std::string_view of) const;
  void check_messages() const;

  transport::WorkPtr submit(Request request);

  const Members members;
  const OpenDomain domain;
  const bool is_on_host;
  std::atomic<std::chrono::milliseconds> deadline;
  const std::unique_ptr<Backend> backend;
  MessageWatch messages;
  std::optional<std::uint64_t> hash;  ///< For the next operation that can carry one.
};

}  // namespace trireme::collectives
