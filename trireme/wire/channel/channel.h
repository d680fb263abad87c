#pragma once

#include <utility>

#include "trireme/wire/transport/endpoint.h"

namespace trireme::channel {

/// One direction between this rank and a peer: messages of any size, in order. Both ends are made
/// from the same list of channels, so that they agree on the tag. Copies are the same channel.
///
/// Threads  safe from any thread; the order of calls is the order of messages.
class Channel {
 public:
  /// endpoint   outlives the channel.
  Channel(transport::Endpoint& endpoint, int peer, transport::Tag tag)
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

}  // namespace trireme::channel
