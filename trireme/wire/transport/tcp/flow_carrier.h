#pragma once

#include <functional>
#include <map>
#include <vector>

#include "trireme/wire/transport/tcp/carrier.h"
#include "trireme/wire/transport/tcp/peer_flows.h"
#include "trireme/wire/transport/tcp/trouble.h"

namespace trireme::transport::internal {

/// Payloads over several connections to each rank, where one does not fill the link.
class FlowCarrier final : public Carrier {
 public:
  /// flows       by rank; of the own one none.
  /// min_bytes   of a message for them; others take the first connection. At least 1.
  FlowCarrier(std::vector<std::vector<Descriptor>> flows, std::size_t min_bytes);

  bool takes(std::size_t bytes) const override { return bytes >= min_bytes_; }
  std::uint64_t receive(int peer, std::span<std::byte> memory, PendingWorkPtr work) override;
  void send(int peer, std::uint64_t key, std::span<const std::byte> data,
            PendingWorkPtr work) override;
  bool has_work(int peer) const override;
  void progress() override;
  const Descriptor& descriptor() const override { return poller_.descriptor(); }
  Deadline next_progress() override { return trouble_.due(); }
  void abandon(std::vector<PendingWorkPtr>& works) override;

 private:
  /// A rank's flows, and what the poller was told of them.
  struct Peer {
    PeerFlows flows;
    std::vector<Poller::Interest> interests;
  };

  void advance(int rank, const std::function<void(PeerFlows&)>& step);

  const std::size_t min_bytes_;
  Poller poller_;
  std::map<int, Peer> peers_;
  std::uint64_t last_key_ = 0;
  Trouble trouble_;
};

}  // namespace trireme::transport::internal
