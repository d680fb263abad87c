#include "trireme/engine/measure/card_measure.h"

#include <algorithm>
#include <cstddef>
#include <future>
#include <span>
#include <utility>

#include "trireme/wire/collectives/channel.h"

namespace trireme::measure {
namespace {

constexpr transport::Tag kCardMessages = 0x63617264;  // nothing else is under way meanwhile

/// From a rank of a host to one of another.
struct Flow {
  int from = 0, to = 0;
};

/// Who sends to whom: each host to the one `shift` places on.
///
/// As many flows from each host as the host of most ranks has ranks, so that all send and get as much.
struct Ring {
  int flows_per_host = 0;
  std::vector<Flow> flows;
};

Ring make_ring(const topology::Topology& topology, int shift) {
  std::vector<std::vector<int>> hosts(topology.hosts.size());
  for (int r = 0; r < static_cast<int>(topology.ranks.size()); ++r)
    hosts[topology.ranks[r].host].push_back(r);
  std::size_t most = 0;
  for (const std::vector<int>& ranks : hosts) most = std::max(most, ranks.size());
  Ring ring{.flows_per_host = static_cast<int>(most), .flows = {}};
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const std::vector<int>&ranks = hosts[h], &next = hosts[(h + shift) % hosts.size()];
    for (std::size_t i = 0; i < most; ++i)
      ring.flows.push_back({ranks[i % ranks.size()], next[i % next.size()]});
  }
  return ring;
}

/// Of each round; two at least.
std::vector<int> shifts_of(std::size_t num_hosts) {
  std::vector<int> shifts = {1};
  for (std::size_t shift = 2; shift < num_hosts; shift *= 2)
    shifts.push_back(static_cast<int>(shift));
  if (shifts.size() == 1) shifts.push_back(1);
  return shifts;
}

class CardTimer {
 public:
  CardTimer(transport::Endpoint& endpoint, const BusyRanks& ranks,
            const topology::Topology& topology, std::int64_t bytes)
      : endpoint_(endpoint),
        ranks_(ranks),
        topology_(topology),
        sent_(static_cast<std::size_t>(bytes), std::byte{1}) {}

  /// By host, seconds until all that is sent to it has come. num_messages: of each flow, by host that sends.
  ///
  /// Nobody waits for a message to send the next: hosts are as fast as their cards, not as the slowest.
  std::vector<double> seconds(const Ring& ring, const std::vector<int>& num_messages) {
    const std::vector<Message> awaited = post(ring, num_messages);
    ranks_.barrier();
    const Clock::time_point start = Clock::now();
    std::future<double> arrival = std::async(std::launch::async, [&] {
      for (const Message& message : awaited) wait(message);
      return std::chrono::duration<double>(Clock::now() - start).count();
    });
    send(ring, num_messages);
    const double mine = arrival.get();
    std::vector<double> longest(topology_.hosts.size());
    for (int rank = 0; rank < ranks_.num_ranks(); ++rank) {
      double& host = longest[topology_.ranks[rank].host];
      host = std::max(host, ranks_.from(rank, {mine}).front());
    }
    return longest;
  }

 private:
  struct Message {
    int peer = 0;
    transport::WorkPtr work;
  };

  collectives::PeerChannel channel(int peer) { return {endpoint_, peer, kCardMessages}; }

  /// All that comes to this rank.
  std::vector<Message> post(const Ring& ring, const std::vector<int>& num_messages) {
    received_.resize(ring.flows.size());
    std::vector<Message> messages;
    for (std::size_t l = 0; l < ring.flows.size(); ++l) {
      const Flow flow = ring.flows[l];
      if (flow.to != endpoint_.rank()) continue;
      received_[l].resize(sent_.size());
      const auto place = [&buffer = received_[l]](std::size_t) { return std::span(buffer); };
      for (int m = 0; m < num_messages[topology_.ranks[flow.from].host]; ++m)
        messages.push_back({flow.from, channel(flow.from).recv(place)});
    }
    return messages;
  }

  /// Two messages of each flow are under way at once.
  void send(const Ring& ring, const std::vector<int>& num_messages) {
    std::vector<int> peers;
    for (const Flow& flow : ring.flows) {
      if (flow.from == endpoint_.rank()) peers.push_back(flow.to);
    }
    std::vector<Message> before, last;
    for (int m = 0; m < num_messages[topology_.ranks[endpoint_.rank()].host]; ++m) {
      for (const Message& message : before) wait(message);
      before = std::move(last);
      last.clear();
      for (const int peer : peers) last.push_back({peer, channel(peer).send(sent_)});
    }
    for (const Message& message : before) wait(message);
    for (const Message& message : last) wait(message);
  }

  void wait(const Message& message) {
    transport::await(transport::message_work(*message.work, endpoint_, message.peer),
                     ranks_.watch(),
                     {.rank = endpoint_.rank(), .operation = "message between hosts"});
  }

  transport::Endpoint& endpoint_;
  const BusyRanks& ranks_;
  const topology::Topology& topology_;
  std::vector<std::byte> sent_;
  std::vector<std::vector<std::byte>> received_;  ///< By flow.
};

}  // namespace

std::vector<double> measure_cards(transport::Endpoint& endpoint, const BusyRanks& ranks,
                                  const topology::Topology& topology, const CardOptions& options) {
  const std::size_t num_hosts = topology.hosts.size();
  if (num_hosts < 2) return {};
  CardTimer timer(endpoint, ranks, topology, options.message_bytes);
  const double wanted = std::chrono::duration<double>(options.time).count();
  std::vector<double> best(num_hosts);
  for (const int shift : shifts_of(num_hosts)) {
    const Ring ring = make_ring(topology, shift);
    const auto to = [&](std::size_t host) { return (host + shift) % num_hosts; };
    std::vector<int> num_messages(num_hosts, 1);
    const std::vector<double> first = timer.seconds(ring, num_messages);
    for (std::size_t h = 0; h < num_hosts; ++h) {
      num_messages[h] = static_cast<int>(
          std::clamp(wanted / first[to(h)], 1.0, static_cast<double>(options.max_messages)));
    }
    const std::vector<double> seconds = timer.seconds(ring, num_messages);
    for (std::size_t h = 0; h < num_hosts; ++h) {
      const double bytes =
          static_cast<double>(options.message_bytes) * ring.flows_per_host * num_messages[h];
      const double gb_per_s = bytes / seconds[to(h)] / 1e9;
      for (const std::size_t host : {h, to(h)}) best[host] = std::max(best[host], gb_per_s);
    }
  }
  return best;
}

}  // namespace trireme::measure
