#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "trireme/base/device.h"
#include "trireme/error.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/endpoint/endpoint.h"
#include "trireme/wire/endpoint/work.h"

namespace trireme::collectives {

/// One direction between this rank and a peer: messages of any size, in order. Both ends are made
/// from the same list of channels, so that they agree on the tag. Copies are the same channel.
///
/// Threads  safe from any thread; the order of calls is the order of messages.
class PeerChannel {
 public:
  /// endpoint   outlives the channel.
  PeerChannel(transport::Endpoint& endpoint, int peer, transport::Tag tag)
      : endpoint_(&endpoint), peer_(peer), tag_(tag) {}

  int peer() const { return peer_; }

  /// As Endpoint::send and Endpoint::recv.
  transport::WorkPtr send(std::span<const std::byte> data) const {
    return endpoint_->send(peer_, tag_, data);
  }
  transport::WorkPtr recv(transport::Placement place) const {
    return endpoint_->recv(peer_, tag_, std::move(place));
  }

 private:
  transport::Endpoint* endpoint_;
  int peer_;
  transport::Tag tag_;
};

struct DeviceChannelOptions {
  std::uint64_t id = 0;  ///< Differs between the channels and groups of a world.
  Device device;         ///< Where this rank's buffers are.
  /// Messages move after what it has at the call. Outlives the channel; may be null.
  Stream* stream = nullptr;
  std::chrono::milliseconds deadline{300'000};  ///< Of a message, as GroupOptions's.
};

/// One direction between two ranks for buffers in memory of their GPUs, in stream order: messages
/// are given to a stream of the channel's in the order of the calls, and the host waits for nothing
/// but what it asks works for; `run_after` lets the caller's stream wait. In the host's memory too.
///
/// It is a group of the two, of which each message is a broadcast: over NCCL a send with its recv,
/// where each rank has a GPU of its own.
///
/// Threads  calls from one thread at a time; works may be waited for anywhere.
/// Cost     a stream and a thread, as of any group on GPUs.
class DeviceChannel {
 public:
  /// Waits for the other end: all ranks make the channels of a world in one order.
  ///
  /// endpoint   outlives the channel. from, to: world ranks, this rank one of them.
  /// Errors     kInvalidArgument for other ranks; those of groups on GPUs.
  DeviceChannel(transport::Endpoint& endpoint, int from, int to,
                const DeviceChannelOptions& options);

  int peer() const;

  /// For `group_work`: who waits for a message under a watch names the other end.
  const Group& group() const { return group_; }

  /// data    lent until the work ends; of one size at both ends.
  /// Errors  kInvalidArgument at the wrong end, and of works whose ends differ in size.
  transport::WorkPtr send(std::span<const std::byte> data);
  transport::WorkPtr recv(std::span<std::byte> data);

 private:
  void check_end(int group_rank, const char* call) const;

  Group group_;
};

}  // namespace trireme::collectives
