// What every Endpoint does while all is well, over all backends. endpoint_failure_test.cc has the
// rest.

#include "trireme/wire/endpoint/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/wire/endpoint/worlds.h"
#include "trireme/wire/endpoint/watch.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class EndpointTest : public OverBackend {
 protected:
  static Endpoints world(int num_ranks) { return make_world(GetParam(), num_ranks); }

  static void shut_down(Endpoints& endpoints) {
    expect_no_errors(run_ranks(endpoints, [](Endpoint& endpoint) { endpoint.shutdown(20s); }));
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, EndpointTest, testing::ValuesIn(kBackends),
                         testing::PrintToStringParamName());

TEST_P(EndpointTest, KnowsItsRank) {
  for (const int num_ranks : {1, 2, 5}) {
    Endpoints endpoints = world(num_ranks);
    for (int rank = 0; rank < num_ranks; ++rank) {
      EXPECT_EQ(endpoints[rank]->rank(), rank);
      EXPECT_EQ(endpoints[rank]->world_size(), num_ranks);
      EXPECT_FALSE(endpoints[rank]->failure().has_value());
    }
    shut_down(endpoints);
  }
}

// Every rank to every rank, itself too.
TEST_P(EndpointTest, MovesMessagesOfEverySize) {
  Endpoints endpoints = world(3);
  expect_no_errors(run_ranks(endpoints, [](Endpoint& endpoint) {
    for (const std::size_t bytes : {0UL, 1UL, 63UL, 64UL, 65UL, (1UL << 20) + 3}) {
      std::vector<std::vector<std::byte>> received(3);
      std::vector<std::byte> sent = random_bytes(endpoint.rank(), bytes);
      std::vector<WorkPtr> works;
      for (int peer = 0; peer < 3; ++peer) {
        works.push_back(endpoint.recv(peer, 7, into(received[peer])));
        works.push_back(endpoint.send(peer, 7, sent));
      }
      for (const WorkPtr& work : works) wait_for(work);
      for (int peer = 0; peer < 3; ++peer) {
        EXPECT_EQ(received[peer], random_bytes(peer, bytes)) << bytes << " bytes from " << peer;
      }
    }
  }));
  shut_down(endpoints);
}

TEST_P(EndpointTest, KeepsTheOrderOfATag) {
  constexpr int kCount = 100;
  Endpoints endpoints = world(2);
  std::vector<std::vector<std::byte>> received(kCount);
  expect_no_errors(run_ranks(endpoints, [&](Endpoint& endpoint) {
    std::vector<std::vector<std::byte>> sent;
    std::vector<WorkPtr> works;
    for (int i = 0; i < kCount; ++i) {
      sent.push_back(random_bytes(i, i * 37 % 2000));
      works.push_back(endpoint.rank() == 0 ? endpoint.send(1, 5, sent.back())
                                           : endpoint.recv(0, 5, into(received[i])));
    }
    for (const WorkPtr& work : works) wait_for(work);
  }));
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(received[i], random_bytes(i, i * 37 % 2000)) << i;
  shut_down(endpoints);
}

// A message that nobody has asked for holds up nothing but itself, however large it is.
TEST_P(EndpointTest, TagsDoNotWaitForEachOther) {
  Endpoints endpoints = world(2);
  const std::vector<std::byte> large = random_bytes(1, 8 << 20);
  const std::vector<std::byte> small = random_bytes(2, 100);
  std::vector<std::byte> received_large;
  std::vector<std::byte> received_small;
  const WorkPtr first = endpoints[0]->send(1, 1, large);
  const WorkPtr second = endpoints[0]->send(1, 2, small);
  wait_for(endpoints[1]->recv(0, 2, into(received_small)));
  wait_for(second);
  EXPECT_EQ(received_small, small);
  EXPECT_FALSE(first->wait_for(10ms));
  wait_for(endpoints[1]->recv(0, 1, into(received_large)));
  wait_for(first);
  EXPECT_EQ(received_large, large);
  shut_down(endpoints);
}

TEST_P(EndpointTest, RecvMayComeFirst) {
  Endpoints endpoints = world(2);
  std::vector<std::byte> received;
  const WorkPtr recv = endpoints[1]->recv(0, 1, into(received));
  EXPECT_FALSE(recv->wait_for(10ms));
  EXPECT_FALSE(recv->is_done());
  const std::vector<std::byte> sent = random_bytes(1, 1000);
  wait_for(endpoints[0]->send(1, 1, sent));
  wait_for(recv);
  EXPECT_TRUE(recv->is_done());
  EXPECT_EQ(received, sent);
  shut_down(endpoints);
}

TEST_P(EndpointTest, ManyMessagesAtOnce) {
  constexpr int kTags = 64;
  Endpoints endpoints = world(2);
  expect_no_errors(run_ranks(endpoints, [](Endpoint& endpoint) {
    const int peer = 1 - endpoint.rank();
    std::vector<std::vector<std::byte>> received(kTags);
    std::vector<std::vector<std::byte>> sent;
    std::vector<WorkPtr> works;
    for (Tag tag = 0; tag < kTags; ++tag) {
      sent.push_back(random_bytes(tag * 2 + endpoint.rank(), tag * 1000));
      works.push_back(endpoint.send(peer, tag, sent.back()));
    }
    for (Tag tag = kTags; tag-- > 0;) {
      works.push_back(endpoint.recv(peer, tag, into(received[tag])));
    }
    for (const WorkPtr& work : works) wait_for(work);
    for (Tag tag = 0; tag < kTags; ++tag) {
      EXPECT_EQ(received[tag], random_bytes(tag * 2 + peer, tag * 1000)) << tag;
    }
  }));
  shut_down(endpoints);
}

// Each direction of a pair and each pair is a stream of its own, though the tag is the same.
TEST_P(EndpointTest, PeersDoNotMix) {
  constexpr int kRanks = 4;
  Endpoints endpoints = world(kRanks);
  expect_no_errors(run_ranks(endpoints, [](Endpoint& endpoint) {
    for (int round = 0; round < 20; ++round) {
      std::vector<std::vector<std::byte>> sent(kRanks);
      std::vector<std::vector<std::byte>> received(kRanks);
      std::vector<WorkPtr> works;
      const auto seed = [&](int from, int to) { return round * 100 + from * 10 + to; };
      for (int peer = 0; peer < kRanks; ++peer) {
        sent[peer] = random_bytes(seed(endpoint.rank(), peer), 500);
        works.push_back(endpoint.send(peer, 1, sent[peer]));
        works.push_back(endpoint.recv(peer, 1, into(received[peer])));
      }
      for (const WorkPtr& work : works) wait_for(work);
      for (int peer = 0; peer < kRanks; ++peer) {
        EXPECT_EQ(received[peer], random_bytes(seed(peer, endpoint.rank()), 500));
      }
    }
  }));
  shut_down(endpoints);
}

TEST_P(EndpointTest, RefusesARankThatIsNotThere) {
  Endpoints endpoints = world(2);
  std::vector<std::byte> memory;
  for (const int peer : {-1, 2}) {
    const Error error = error_of_call([&] { endpoints[1]->send(peer, 0, {}); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("no rank " + std::to_string(peer)));
    EXPECT_THROW(endpoints[1]->recv(peer, 0, into(memory)), Error);
  }
  shut_down(endpoints);
}

Envelope envelope_of(unsigned char first) {
  Envelope envelope{};
  envelope.front() = std::byte{first};
  envelope.back() = std::byte{0xff};
  return envelope;
}

TEST_P(EndpointTest, EnvelopesComeBeforeTheirMessages) {
  Endpoints endpoints = world(2);
  expect_no_errors(run_ranks(endpoints, [](Endpoint& endpoint) {
    for (int peer = 0; peer < 2; ++peer) {                           // the own rank too
      const std::vector<std::byte> sent = random_bytes(1, 700'000);  // several frames
      std::vector<std::byte> received;
      Envelope seen{};
      const WorkPtr recv = endpoint.recv(peer, 1, into(received), [&](const Envelope& envelope) {
        EXPECT_TRUE(received.empty());
        seen = envelope;
      });
      wait_for(endpoint.send(peer, 1, sent, envelope_of(endpoint.rank())));
      wait_for(recv);
      EXPECT_EQ(seen, envelope_of(peer));
      EXPECT_EQ(received, sent);
    }
  }));
  shut_down(endpoints);
}

TEST_P(EndpointTest, NotesNeedNoRecvAndTheLastCounts) {
  Endpoints endpoints = world(3);
  Notes& notes = endpoints[2]->notes();
  EXPECT_FALSE(notes.heard(0, 5).has_value());
  endpoints[0]->notes().tell(2, 5, envelope_of(1));
  endpoints[0]->notes().tell(2, 5, envelope_of(2));
  endpoints[1]->notes().tell(2, 5, envelope_of(3));
  notes.tell(2, 5, envelope_of(4));
  const auto has_heard = [&](int peer, unsigned char first) {
    for (int i = 0; i < 1000 && notes.heard(peer, 5) != envelope_of(first); ++i) {
      std::this_thread::sleep_for(1ms);
    }
    return notes.heard(peer, 5) == envelope_of(first);
  };
  EXPECT_TRUE(has_heard(0, 2));
  EXPECT_TRUE(has_heard(1, 3));
  EXPECT_TRUE(has_heard(2, 4));
  EXPECT_FALSE(notes.heard(0, 6).has_value());
  EXPECT_THROW(notes.tell(3, 5, {}), Error);
  shut_down(endpoints);
}

TEST_P(EndpointTest, WorksTellTheirEnd) {
  Endpoints endpoints = world(2);
  const auto ended = std::make_shared<Completions>();
  EXPECT_TRUE(ended->take(std::chrono::steady_clock::now()).empty());
  std::vector<std::byte> received;
  const std::vector<std::byte> sent = random_bytes(1, 1000);
  const WorkPtr recv = endpoints[1]->recv(0, 1, into(received));
  recv->tell_end(ended, 7);
  wait_for(endpoints[0]->send(1, 1, sent));
  EXPECT_EQ(ended->take(std::chrono::steady_clock::now() + 20s), std::vector<std::size_t>{7});
  recv->tell_end(ended, 8);  // it has ended already
  const WorkPtr never = endpoints[1]->recv(0, 2, into(received));
  never->tell_end(ended, 9);
  endpoints[0]->poison(Error(ErrorKind::kIo, "stop"));
  error_of(never);
  EXPECT_EQ(ended->take(std::chrono::steady_clock::now()), (std::vector<std::size_t>{8, 9}));
}

TEST_P(EndpointTest, WaitingTooLongSaysForWhom) {
  Endpoints endpoints = world(2);
  std::vector<std::byte> memory;
  const WorkPtr work = endpoints[0]->recv(1, 3, into(memory));
  const WatchOptions watch{.deadline = 10ms, .logger = Logger(LogLevel::kOff)};
  const Error error = error_of_call([&] {
    await(message_work(*work, *endpoints[0], 1), watch, {.operation = "recv", .step = 4});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_EQ(error.message(), "rank 0 has waited 0 s in 'recv' of step 4 for rank 1");
  EXPECT_EQ(error.context().peer, 1);
}

}  // namespace
}  // namespace trireme::transport::test
