#include "trireme/engine/measure/card_measure.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "trireme/wire/collectives/channel.h"

namespace trireme::measure {
namespace {

constexpr transport::Tag kCardMessages = 0x63617264;  // nothing else is under way meanwhile

/// Who sends to whom: rank i of a host to rank i of the next one, as many times round as there are ranks.
struct Ways {
  std::vector<int> to;                 ///< By rank.
  std::vector<std::vector<int>> from;  ///< By rank.
};

Ways ways_of(const topology::Topology& topology) {
  std::vector<std::vector<int>> hosts(topology.hosts.size());
  for (int r = 0; r < static_cast<int>(topology.ranks.size()); ++r)
    hosts[topology.ranks[r].host].push_back(r);
  Ways ways{std::vector<int>(topology.ranks.size()),
            std::vector<std::vector<int>>(topology.ranks.size())};
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const std::vector<int>& next = hosts[(h + 1) % hosts.size()];
    for (std::size_t i = 0; i < hosts[h].size(); ++i) {
      ways.to[hosts[h][i]] = next[i % next.size()];
      ways.from[next[i % next.size()]].push_back(hosts[h][i]);
    }
  }
  return ways;
}

class CardTimer {
 public:
  CardTimer(transport::Endpoint& endpoint, const BusyRanks& ranks, const Ways& ways,
            std::int64_t bytes)
      : endpoint_(endpoint),
        ranks_(ranks),
        ways_(ways),
        sent_(static_cast<std::size_t>(bytes), std::byte{1}),
        received_(sent_.size()) {}

  /// Seconds until so many messages of this rank have arrived, and those to it; by rank.
  std::vector<double> seconds(int num_messages) {
    const int rank = endpoint_.rank();
    ranks_.barrier();
    const Clock::time_point start = Clock::now();
    for (int m = 0; m < num_messages; ++m) {
      const transport::WorkPtr question = channel(ways_.to[rank]).send(sent_);
      for (const int peer : ways_.from[rank]) {
        wait(channel(peer).recv([this](std::size_t) { return std::span(received_); }), peer);
      }
      wait(question, ways_.to[rank]);
    }
    // The last is there once its receiver says so. Nobody waits for a send before its own recv is posted.
    std::vector<transport::WorkPtr> answers;
    for (const int peer : ways_.from[rank])
      answers.push_back(channel(peer).send({sent_.data(), 1}));
    const auto place = [this](std::size_t) { return std::span(received_).first(1); };
    wait(channel(ways_.to[rank]).recv(place), ways_.to[rank]);
    for (std::size_t i = 0; i < answers.size(); ++i) wait(answers[i], ways_.from[rank][i]);
    const double mine = std::chrono::duration<double>(Clock::now() - start).count();
    std::vector<double> all;
    for (int other = 0; other < ranks_.num_ranks(); ++other)
      all.push_back(ranks_.from(other, {mine}).front());
    return all;
  }

 private:
  collectives::PeerChannel channel(int peer) { return {endpoint_, peer, kCardMessages}; }

  void wait(const transport::WorkPtr& work, int peer) {
    transport::await(transport::message_work(*work, endpoint_, peer), ranks_.watch(),
                     {.rank = endpoint_.rank(), .operation = "message between hosts"});
  }

  transport::Endpoint& endpoint_;
  const BusyRanks& ranks_;
  const Ways& ways_;
  std::vector<std::byte> sent_, received_;
};

}  // namespace

std::vector<double> measure_cards(transport::Endpoint& endpoint, const BusyRanks& ranks,
                                  const topology::Topology& topology, const CardOptions& options) {
  if (topology.hosts.size() < 2) return {};
  const Ways ways = ways_of(topology);
  CardTimer timer(endpoint, ranks, ways, options.message_bytes);
  const double first = std::ranges::max(timer.seconds(1));
  const double wanted = std::chrono::duration<double>(options.time).count();
  const int num_messages =
      static_cast<int>(std::clamp(wanted / first, 1.0, static_cast<double>(options.max_messages)));
  std::vector<double> best(topology.hosts.size());
  for (int round = 0; round < 2; ++round) {
    const std::vector<double> seconds = timer.seconds(num_messages);
    std::vector<double> longest(best.size()), bytes(best.size());
    for (std::size_t r = 0; r < seconds.size(); ++r) {
      const int host = topology.ranks[r].host;
      longest[host] = std::max(longest[host], seconds[r]);
      bytes[host] += static_cast<double>(options.message_bytes) * num_messages;
    }
    for (std::size_t h = 0; h < best.size(); ++h)
      best[h] = std::max(best[h], bytes[h] / longest[h] / 1e9);
  }
  return best;
}

}  // namespace trireme::measure
