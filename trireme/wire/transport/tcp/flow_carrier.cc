#include "trireme/wire/transport/tcp/flow_carrier.h"

#include <utility>

namespace trireme::transport::internal {
namespace {

constexpr std::uint64_t kIdsOfRank = 256;  // of the poller; kMaxTcpFlows are used

std::uint64_t id_of(int rank, std::size_t flow) {
  return static_cast<std::uint64_t>(rank) * kIdsOfRank + flow;
}

}  // namespace

FlowCarrier::FlowCarrier(std::vector<std::vector<Descriptor>> flows, std::size_t min_bytes)
    : min_bytes_(min_bytes) {
  for (int rank = 0; rank < static_cast<int>(flows.size()); ++rank) {
    const std::size_t num_flows = flows[rank].size();
    if (num_flows == 0) continue;
    const auto [entry, is_new] = peers_.emplace(
        rank,
        Peer{PeerFlows(rank, std::move(flows[rank])), std::vector<Poller::Interest>(num_flows)});
    for (std::size_t flow = 0; flow < num_flows; ++flow) {
      poller_.add(entry->second.flows.socket(flow), id_of(rank, flow));
    }
  }
}

std::uint64_t FlowCarrier::receive(int peer, std::span<std::byte> memory, PendingWorkPtr work) {
  const std::uint64_t key = ++last_key_;
  advance(peer, [&](PeerFlows& flows) { flows.receive(key, memory, std::move(work)); });
  return key;
}

void FlowCarrier::send(int peer, std::uint64_t key, std::span<const std::byte> data,
                       PendingWorkPtr work) {
  advance(peer, [&](PeerFlows& flows) { flows.send(key, data, std::move(work)); });
}

bool FlowCarrier::has_work(int peer) const { return peers_.at(peer).flows.has_work(); }

void FlowCarrier::progress() {
  for (const Poller::Event& event : poller_.wait(Deadline{})) {
    advance(static_cast<int>(event.id / kIdsOfRank), [&](PeerFlows& flows) {
      if (event.is_readable) flows.read(event.id % kIdsOfRank);
      if (event.is_writable) flows.write();
    });
  }
  trouble_.check();
}

/// What a rank's connection may explain better waits for that; other errors are thrown.
void FlowCarrier::advance(int rank, const std::function<void(PeerFlows&)>& step) {
  Peer& peer = peers_.at(rank);
  try {
    step(peer.flows);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kPeerLost) throw;
    trouble_.note(error);
  }
  for (std::size_t flow = 0; flow < peer.interests.size(); ++flow) {
    const Poller::Interest wanted = peer.flows.wanted(flow);
    if (wanted == peer.interests[flow] || !peer.flows.socket(flow).is_open()) continue;
    poller_.change(peer.flows.socket(flow), id_of(rank, flow), wanted);
    peer.interests[flow] = wanted;
  }
}

void FlowCarrier::abandon(std::vector<PendingWorkPtr>& works) {
  for (auto& [rank, peer] : peers_) peer.flows.abandon(works);
}

}  // namespace trireme::transport::internal
