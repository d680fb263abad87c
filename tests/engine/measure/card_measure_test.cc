#include "trireme/engine/measure/card_measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/engine/measure/ranks.h"
#include "trireme/engine/measure/detect_topology.h"

namespace trireme::measure {
namespace {

using testing::SizeIs;
using namespace std::chrono_literals;

topology::Topology ranks_on(const std::vector<int>& hosts) {
  topology::Topology topology;
  for (int h = 0; h <= std::ranges::max(hosts); ++h)
    topology.hosts.push_back({std::string(1, static_cast<char>('a' + h)), 4, 1 << 30});
  for (const int host : hosts) topology.ranks.push_back({host, {0}, 1 << 20});
  return topology;
}

/// Cards of hosts: one message at a time each way, which takes as long as the slower of its two cards says.
struct Cards {
  explicit Cards(const std::vector<std::chrono::microseconds>& times)
      : message_times(times), out(times.size()), in(times.size()) {}

  void pass(int from, int to) {
    const std::scoped_lock lock(out[from], in[to]);
    std::this_thread::sleep_for(std::max(message_times[from], message_times[to]));
  }

  std::vector<std::chrono::microseconds> message_times;
  std::vector<std::mutex> out, in;
};

/// An endpoint of a rank behind one of them.
class BehindCard : public transport::Endpoint {
 public:
  BehindCard(transport::Endpoint& endpoint, Cards& cards, const topology::Topology& topology)
      : endpoint_(endpoint), cards_(cards), topology_(topology) {}

  int rank() const override { return endpoint_.rank(); }
  int world_size() const override { return endpoint_.world_size(); }
  transport::WorkPtr send(int peer, transport::Tag tag, std::span<const std::byte> data,
                          const transport::Envelope& envelope) override {
    cards_.pass(topology_.ranks[rank()].host, topology_.ranks[peer].host);
    return endpoint_.send(peer, tag, data, envelope);
  }
  transport::WorkPtr recv(int peer, transport::Tag tag, transport::Placement place,
                          transport::Inspection inspect) override {
    return endpoint_.recv(peer, tag, std::move(place), std::move(inspect));
  }
  transport::Notes& notes() override { return endpoint_.notes(); }
  transport::Domains& domains() override { return endpoint_.domains(); }
  transport::Messages& messages() override { return endpoint_.messages(); }
  void poison(const Error& error) override { endpoint_.poison(error); }
  transport::LocalPeers& local_peers() override { return endpoint_.local_peers(); }
  std::string path() const override { return endpoint_.path(); }
  std::shared_ptr<transport::Failure> shared_failure() const override {
    return endpoint_.shared_failure();
  }
  void shutdown(std::chrono::milliseconds deadline) override { endpoint_.shutdown(deadline); }

 private:
  transport::Endpoint& endpoint_;
  Cards& cards_;
  const topology::Topology& topology_;
};

/// GB/s, in messages of 1000 bytes.
std::vector<double> measured(const std::vector<int>& hosts,
                             const std::vector<std::chrono::microseconds>& message_times) {
  const topology::Topology topology = ranks_on(hosts);
  Cards cards(message_times);
  std::vector<double> found;
  run_ranks(static_cast<int>(hosts.size()), [&](transport::Endpoint& endpoint,
                                                const BusyRanks& ranks) {
    BehindCard behind(endpoint, cards, topology);
    const auto own = measure_cards(behind, ranks, topology, {.message_bytes = 1000, .time = 60ms});
    if (endpoint.rank() == 0) found = own;
  });
  return found;
}

// A host of one rank counted as a quarter as fast as its equal with four.
TEST(CardMeasureTest, EqualCardsAreEqualWhateverTheNumberOfRanks) {
  const std::vector<double> found = measured({0, 1, 1, 1, 1}, {5ms, 5ms});
  ASSERT_THAT(found, SizeIs(2));
  for (const double gb_per_s : found) {
    EXPECT_LT(gb_per_s, 1.2 * 1000 / 5e6);
    EXPECT_GT(gb_per_s, 0.4 * 1000 / 5e6);
  }
}

// All counted as slow as the slowest, because they waited for its messages.
TEST(CardMeasureTest, ASlowCardMakesNoOtherSlow) {
  const std::vector<double> found = measured({0, 1, 2}, {2ms, 20ms, 2ms});
  ASSERT_THAT(found, SizeIs(3));
  EXPECT_LT(found[1], 1.2 * 1000 / 20e6);
  EXPECT_GT(found[0], 3 * found[1]);
  EXPECT_GT(found[2], 3 * found[1]);
}

/// Hosts of two, one and three ranks: all send, and all know what each host has sent.
TEST(CardMeasureTest, WhatHostsSendAtOnceIsTheSameOnAllRanks) {
  const topology::Topology topology = ranks_on({0, 1, 2, 0, 2, 2});
  std::array<std::vector<double>, 6> found;
  run_ranks(6, [&](transport::Endpoint& endpoint, const BusyRanks& ranks) {
    found[endpoint.rank()] = measure_cards(
        endpoint, ranks, topology, {.message_bytes = 64 << 10, .max_messages = 3, .time = 5ms});
  });
  ASSERT_THAT(found[0], SizeIs(3));
  for (const std::vector<double>& one : found) EXPECT_EQ(one, found[0]);
  for (const double gb_per_s : found[0]) {
    EXPECT_GT(gb_per_s, 1e-6);
    EXPECT_LT(gb_per_s, 1e4);
  }
}

TEST(CardMeasureTest, OneHostHasNoNetwork) {
  run_ranks(2, [](transport::Endpoint& endpoint, const BusyRanks& ranks) {
    const topology::Topology topology = detect_topology(ranks, {});
    EXPECT_THAT(measure_cards(endpoint, ranks, topology), SizeIs(0));
  });
}

}  // namespace
}  // namespace trireme::measure
