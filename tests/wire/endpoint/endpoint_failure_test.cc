// What every Endpoint does when something fails: nobody hangs, everyone has the same cause.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/wire/endpoint/worlds.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

class EndpointFailureTest : public OverBackend {
 protected:
  static Endpoints world(int num_ranks) { return make_world(GetParam(), num_ranks); }
};

INSTANTIATE_TEST_SUITE_P(Backends, EndpointFailureTest, testing::ValuesIn(kBackends),
                         testing::PrintToStringParamName());

/// The rank waits for a message that nobody sends: the error that ends the wait.
Error error_of_waiting(Endpoint& endpoint, int peer) {
  std::vector<std::byte> memory;
  const WorkPtr work = endpoint.recv(peer, 99, into(memory));
  return error_of(work);
}

TEST_P(EndpointFailureTest, PoisonReachesEveryRankWithTheSameText) {
  Endpoints endpoints = world(4);
  Error cause(ErrorKind::kIo, "cannot read the data", Error(ErrorKind::kIo, "disk on fire"));
  cause.add({.step = 12});
  std::vector<std::string> texts(4);
  expect_no_errors(run_ranks(endpoints, [&](Endpoint& endpoint) {
    if (endpoint.rank() == 2) {
      endpoint.poison(cause);
      texts[2] = endpoint.failure()->what();
      return;
    }
    const Error error = error_of_waiting(endpoint, (endpoint.rank() + 1) % 4);
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_EQ(error.context().rank, 2);
    EXPECT_EQ(error.context().step, 12);
    texts[endpoint.rank()] = error.what();
    EXPECT_EQ(endpoint.failure()->what(), texts[endpoint.rank()]);
  }));
  EXPECT_THAT(texts[0], HasSubstr("cannot read the data"));
  EXPECT_THAT(texts[0], HasSubstr("disk on fire"));
  for (const std::string& text : texts) EXPECT_EQ(text, texts[2]);
}

// Who fails in a domain may end its process at once.
TEST_P(EndpointFailureTest, ALossThatFollowsFromADomainsFailureDoesNotHideIt) {
  constexpr Tag kDomain = Tag{1} << 63 | 8;
  Endpoints endpoints = world(3);
  std::vector<std::shared_ptr<Failure>> failures;
  for (auto& endpoint : endpoints) {
    failures.push_back(endpoint->domains().open({kDomain, {0, 1, 2}, {}}));
  }
  endpoints[2]->domains().fail(kDomain, Error(ErrorKind::kIo, "disk on fire"));
  for (const int rank : {0, 1}) {
    while (!failures[rank]->error()) std::this_thread::sleep_for(1ms);
  }
  endpoints[2].reset();
  for (const int rank : {0, 1}) {
    while (!endpoints[rank]->failure()) std::this_thread::sleep_for(1ms);
    std::vector<std::byte> memory;
    const WorkPtr work = endpoints[rank]->recv(1 - rank, kDomain, into(memory));
    EXPECT_THAT(error_of(work).what(), HasSubstr("disk on fire"));
  }
}

TEST_P(EndpointFailureTest, FirstPoisonStays) {
  Endpoints endpoints = world(3);
  endpoints[1]->poison(Error(ErrorKind::kIo, "the first"));
  // The others have heard of it before they fail themselves.
  for (const int rank : {0, 2}) {
    EXPECT_EQ(error_of_waiting(*endpoints[rank], 1).message(), "the first");
    endpoints[rank]->poison(Error(ErrorKind::kIo, "the second"));
  }
  for (const auto& endpoint : endpoints) {
    EXPECT_EQ(error_of_waiting(*endpoint, 0).message(), "the first");
    EXPECT_EQ(endpoint->failure()->message(), "the first");
    EXPECT_EQ(error_of_call([&] { endpoint->shutdown(20s); }).message(), "the first");
  }
}

// Poison in the middle of large messages in all directions: lent memory is free afterwards.
TEST_P(EndpointFailureTest, PoisonInTheMiddleOfMessages) {
  Endpoints endpoints = world(3);
  expect_no_errors(run_ranks(endpoints, [](Endpoint& endpoint) {
    std::vector<WorkPtr> works;
    {
      std::vector<std::byte> sent = random_bytes(1, 4 << 20);
      std::vector<std::vector<std::byte>> received(3);
      for (int peer = 0; peer < 3; ++peer) {
        works.push_back(endpoint.recv(peer, 1, into(received[peer])));
        works.push_back(endpoint.send(peer, 1, sent));
      }
      if (endpoint.rank() == 1) endpoint.poison(Error(ErrorKind::kCancelled, "stop"));
      for (const WorkPtr& work : works) {
        try {
          work->wait_for(20s);
        } catch (const Error& error) {
          EXPECT_EQ(error.message(), "stop");
        }
        EXPECT_TRUE(work->is_done());
      }
    }
    EXPECT_EQ(error_of_waiting(endpoint, 1).message(), "stop");
  }));
}

enum class Step { kIdle, kRecvWaits, kSendWaits, kInMessages, kAlreadyLost };

// The last of three ranks goes away without a word.
TEST_P(EndpointFailureTest, ALostPeerIsNamedByAll) {
  for (const Step step :
       {Step::kIdle, Step::kRecvWaits, Step::kSendWaits, Step::kInMessages, Step::kAlreadyLost}) {
    Endpoints endpoints = world(3);
    const std::vector<std::byte> message = random_bytes(1, 1 << 20);
    std::vector<std::vector<std::byte>> memory(2);
    std::vector<WorkPtr> works;
    for (const int rank : {0, 1}) {
      Endpoint& endpoint = *endpoints[rank];
      if (step == Step::kRecvWaits) works.push_back(endpoint.recv(2, 1, into(memory[rank])));
      if (step == Step::kSendWaits) works.push_back(endpoint.send(2, 1, message));
      if (step == Step::kInMessages) {
        works.push_back(endpoint.recv(2, 1, into(memory[rank])));
        endpoints[2]->send(rank, 1, message);
        works.push_back(endpoint.recv(2, 1, into(memory[rank])));
      }
      if (step == Step::kIdle) works.push_back(endpoint.recv(1 - rank, 1, into(memory[rank])));
    }
    const Clock::time_point start = Clock::now();
    endpoints[2].reset();
    if (step == Step::kAlreadyLost) {
      for (const int rank : {0, 1})
        works.push_back(endpoints[rank]->recv(2, 1, into(memory[rank])));
    }
    for (std::size_t i = 0; i < works.size(); ++i) {
      if (step == Step::kInMessages && i % 2 == 0) continue;  // may have got through
      const Error error = error_of(works[i]);
      EXPECT_EQ(error.kind(), ErrorKind::kPeerLost) << static_cast<int>(step);
      EXPECT_EQ(error.message(), "rank 2 is lost: its connection closed");
      EXPECT_EQ(error.context().peer, 2);
    }
    EXPECT_LT(Clock::now() - start, 2s);
    for (const int rank : {0, 1}) {
      EXPECT_THAT(error_of_waiting(*endpoints[rank], 1 - rank).what(), HasSubstr("rank 2 is lost"));
    }
  }
}

TEST_P(EndpointFailureTest, MemoryOfTheWrongSizeIsAnError) {
  Endpoints endpoints = world(2);
  std::vector<std::byte> memory(10);
  const std::vector<std::byte> message(11);
  const WorkPtr recv = endpoints[0]->recv(1, 1, [&](std::size_t) { return std::span(memory); });
  const WorkPtr send = endpoints[1]->send(0, 1, message);
  const Error error = error_of(recv);
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("11 bytes"));
  EXPECT_THAT(error.message(), HasSubstr("for 10"));
  EXPECT_THAT(error_of_waiting(*endpoints[1], 0).message(), HasSubstr("11 bytes"));
}

TEST_P(EndpointFailureTest, APlacementMayThrow) {
  for (const std::size_t bytes : {0, 1000}) {
    Endpoints endpoints = world(2);
    const std::vector<std::byte> message(bytes);
    const WorkPtr recv = endpoints[0]->recv(
        1, 1, [](std::size_t) -> std::span<std::byte> { throw std::bad_alloc(); });
    const WorkPtr send = endpoints[1]->send(0, 1, message);
    EXPECT_EQ(error_of(recv).kind(), ErrorKind::kResourceExhausted);
    EXPECT_EQ(error_of_waiting(*endpoints[1], 0).kind(), ErrorKind::kResourceExhausted);
  }
}

TEST_P(EndpointFailureTest, AnInspectionMayThrow) {
  Endpoints endpoints = world(2);
  std::vector<std::byte> memory;
  const WorkPtr recv = endpoints[0]->recv(1, 1, into(memory), [](const Envelope&) {
    throw Error(ErrorKind::kCorruptData, "not mine");  // not the connection's fault
  });
  const std::vector<std::byte> message(10);
  const WorkPtr send = endpoints[1]->send(0, 1, message);
  EXPECT_EQ(error_of(recv).message(), "not mine");
  EXPECT_EQ(error_of_waiting(*endpoints[1], 0).message(), "not mine");
  EXPECT_TRUE(memory.empty());
}

TEST_P(EndpointFailureTest, ShutdownNamesWhoIsMissing) {
  Endpoints endpoints = world(4);
  const Errors errors = run_threads(2, [&](int rank) { endpoints[rank]->shutdown(100ms); });
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(errors[rank].has_value());
    EXPECT_EQ(errors[rank]->kind(), ErrorKind::kTimeout);
    EXPECT_THAT(errors[rank]->message(), HasSubstr("no goodbye from ranks 2, 3 within 100 ms"));
    EXPECT_EQ(errors[rank]->context().rank, rank);
  }
}

TEST_P(EndpointFailureTest, ALossDuringShutdownIsSeen) {
  Endpoints endpoints = world(3);
  const Errors errors = run_threads(3, [&](int rank) {
    if (rank == 2) {
      endpoints[2].reset();
    } else {
      endpoints[rank]->shutdown(20s);
    }
  });
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(errors[rank].has_value());
    EXPECT_EQ(errors[rank]->message(), "rank 2 is lost: its connection closed");
  }
}

TEST_P(EndpointFailureTest, GoodbyeWithMessagesUnderWayIsALoss) {
  Endpoints endpoints = world(2);
  std::vector<std::byte> memory;
  const WorkPtr work = endpoints[0]->recv(1, 1, into(memory));
  const Errors errors = run_threads(1, [&](int) { endpoints[1]->shutdown(20s); });
  EXPECT_EQ(error_of(work).message(), "rank 1 is lost: it said goodbye with messages under way");
  ASSERT_TRUE(errors[0].has_value());
  EXPECT_EQ(errors[0]->kind(), ErrorKind::kPeerLost);
}

// Rank 0 reads of the failure and the goodbye at once: it was busy in between.
TEST_P(EndpointFailureTest, GoodbyeRightAfterADomainsFailureIsNoLoss) {
  constexpr Tag kDomain = Tag{1} << 63 | 8;
  Endpoints endpoints = world(2);
  for (auto& endpoint : endpoints) endpoint->domains().open({kDomain, {0, 1}, {}});
  std::vector<std::byte> memory;
  const WorkPtr waiting = endpoints[0]->recv(1, kDomain, into(memory));
  const WorkPtr slow = endpoints[0]->recv(
      1, 1, into(memory), [](const Envelope&) { std::this_thread::sleep_for(100ms); });
  endpoints[1]->send(0, 1, {})->wait_for(20s);
  const Errors errors = run_threads(2, [&](int rank) {
    if (rank == 1) {
      endpoints[1]->domains().fail(kDomain, Error(ErrorKind::kIo, "disk on fire"));
    } else {
      EXPECT_EQ(error_of(waiting).message(), "disk on fire");
    }
    endpoints[rank]->shutdown(20s);
  });
  expect_no_errors(errors);
  EXPECT_TRUE(slow->is_done());
}

TEST_P(EndpointFailureTest, WhoHasSaidGoodbyeTakesNothingMore) {
  Endpoints endpoints = world(2);
  const Errors errors = run_threads(1, [&](int) { endpoints[1]->shutdown(100ms); });
  EXPECT_EQ(errors[0]->kind(), ErrorKind::kTimeout);
  const Error error = error_of(endpoints[0]->send(1, 1, {}));
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_EQ(error.message(), "rank 1 is lost: it has said goodbye");
}

TEST(SimWorld, KillEndsAllWorks) {
  SimWorld world(3);
  Endpoints endpoints;
  for (int rank = 0; rank < 3; ++rank) endpoints.push_back(world.make_endpoint(rank));
  std::vector<std::byte> memory;
  const WorkPtr work = endpoints[0]->recv(2, 1, into(memory));
  world.kill(1);
  EXPECT_EQ(error_of(work).message(), "rank 1 is lost: it was killed");
}

}  // namespace
}  // namespace trireme::transport::test
