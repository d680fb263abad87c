#include "trireme/wire/bootstrap/regroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/bootstrap/store.h"
#include "trireme/wire/endpoint/elastic_world.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using Clients = std::vector<std::unique_ptr<TestClient>>;

Clients clients_of(const StoreServer& server, int count) {
  Clients clients;
  for (int rank = 0; rank < count; ++rank) {
    clients.push_back(std::make_unique<TestClient>(server.address(), rank));
  }
  return clients;
}

/// Each of `ranks` regroups, at the same time; what each got.
std::vector<Generation> regroup(Clients& clients, const std::vector<int>& ranks,
                                const RegroupOptions& options, Errors* errors = nullptr) {
  std::vector<Generation> result(ranks.size());
  const int size = static_cast<int>(clients.size());
  const Errors thrown = run_threads(static_cast<int>(ranks.size()), [&](int i) {
    result[i] = clients[ranks[i]]->regroup("next", size, options);
  });
  if (errors != nullptr) {
    *errors = thrown;
  } else {
    expect_no_errors(thrown);
  }
  return result;
}

TEST(Regroup, ThoseThatAreLeftGetNewRanksInOrder) {
  const TestStore server;
  Clients clients = clients_of(server, 4);
  clients[1].reset();
  const auto begin = Clock::now();
  const std::vector<Generation> begun = regroup(clients, {3, 0, 2}, {.window = 20s});
  EXPECT_LT(Clock::now() - begin, 2s);  // nobody else can come
  EXPECT_EQ(begun[0].rank, 2);
  EXPECT_EQ(begun[1].rank, 0);
  EXPECT_EQ(begun[2].rank, 1);
  for (const Generation& generation : begun) {
    EXPECT_THAT(generation.members, ElementsAre(0, 2, 3));
  }
  EXPECT_EQ(clients[3]->rank(), 2);
}

// A loss ended the store for all.
TEST(Regroup, ALossIsOneGenerations) {
  TestStore server;
  Clients clients = clients_of(server, 4);
  clients[1].reset();
  while (true) {
    try {
      clients[0]->check();
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "rank 1 is lost: its connection closed");
      break;
    }
  }
  regroup(clients, {0, 2, 3}, {});
  clients[0]->set("key", "value");
  EXPECT_EQ(clients[3]->get("key", 20s), "value");
  // Rank 2 of the first generation is rank 1 of this one; the owner knows it as 2.
  server.mark_lost(2, "killed by signal 9");
  EXPECT_EQ(error_of_call([&] { clients[3]->get("key", 20s); }).message(),
            "rank 1 is lost: killed by signal 9");
  TestClient newcomer(server.address(), 5);  // of the first generation
  EXPECT_EQ(error_of_call([&] { newcomer.check(); }).message(),
            "rank 1 is lost: its connection closed");
}

TEST(Regroup, WhoIsSilentIsLeftBehind) {
  const TestStore server;
  Clients clients = clients_of(server, 3);
  const auto begin = Clock::now();
  const std::vector<Generation> begun = regroup(clients, {0, 1}, {.window = 100ms});
  EXPECT_GE(Clock::now() - begin, 100ms);
  EXPECT_THAT(begun[0].members, ElementsAre(0, 1));
  const Error late = error_of_call([&] { clients[2]->regroup("next", 3, {}); });
  EXPECT_EQ(late.kind(), ErrorKind::kTimeout);
  EXPECT_EQ(late.message(),
            "next has begun without rank 2: it called in too late; its members were ranks 0, 1. "
            "End this process, or wait longer in `regroup`");
  clients[1]->check();
}

TEST(Regroup, GivenMembersAreWaitedFor) {
  const TestStore server;
  Clients clients = clients_of(server, 4);
  const RegroupOptions options{.members = {0, 3}, .window = 20s};
  auto first =
      std::async(std::launch::async, [&] { return clients[0]->regroup("next", 4, options); });
  EXPECT_EQ(first.wait_for(30ms), std::future_status::timeout);
  EXPECT_EQ(clients[3]->regroup("next", 4, options).rank, 1);
  EXPECT_THAT(first.get().members, ElementsAre(0, 3));
}

TEST(Regroup, AMemberThatHasEndedIsNamed) {
  const TestStore server;
  Clients clients = clients_of(server, 3);
  auto waiting = std::async(std::launch::async, [&] {
    return error_of_call([&] { clients[0]->regroup("next", 3, {.members = {0, 1}}); });
  });
  EXPECT_EQ(waiting.wait_for(30ms), std::future_status::timeout);
  clients[1].reset();
  const Error error = waiting.get();
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_EQ(error.message(), "rank 1 is lost: it was to go on in next");
  EXPECT_EQ(error.context().peer, 1);
  regroup(clients, {0, 2}, {.members = {0, 2}});  // it may be tried again
}

TEST(Regroup, TooFewDoNotGoOn) {
  const TestStore server;
  Clients clients = clients_of(server, 3);
  Errors errors;
  regroup(clients, {0, 1}, {.window = 50ms, .at_least = 3}, &errors);
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kTimeout);
    EXPECT_THAT(error->message(), HasSubstr("2 ranks have called in within 50 ms"));
    EXPECT_THAT(error->message(), HasSubstr("late: rank 2"));
  }
}

TEST(Regroup, RanksThatWantOtherMembersAreTold) {
  const TestStore server;
  Clients clients = clients_of(server, 3);
  const Errors errors = run_threads(2, [&](int rank) {
    clients[rank]->regroup("next", 3,
                           {.members = rank == 0 ? std::vector{0, 1} : std::vector{0, 1, 2}});
  });
  ASSERT_TRUE(errors[0].has_value() && errors[1].has_value());
  EXPECT_EQ(errors[0]->kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(errors[0]->message(), errors[1]->message());
  EXPECT_THAT(errors[0]->message(), HasSubstr("do not agree on who goes on in next"));
}

TEST(Regroup, CallsAreReadBack) {
  const internal::RegroupCall call{7, {.members = {1, 5}, .window = 3s, .at_least = 2}};
  const internal::RegroupCall back = internal::parse_regroup_call(internal::to_bytes(call));
  EXPECT_EQ(back.world_size, 7);
  EXPECT_EQ(back.options, call.options);
  EXPECT_EQ(error_of_call([] { internal::parse_regroup_call("nothing"); }).kind(),
            ErrorKind::kCorruptData);
}

// ---- Worlds

using Worlds = std::vector<std::unique_ptr<ElasticWorld>>;

Worlds make_worlds(const StoreServer& server, int count) {
  Worlds worlds(count);
  expect_no_errors(run_threads(count, [&](int rank) {
    worlds[rank] = std::make_unique<ElasticWorld>(
        Meeting{.store = server.address(), .token = Token::for_tests()},
        ElasticWorldOptions{.rank = rank, .world_size = count});
  }));
  return worlds;
}

TEST(ElasticWorld, AbortNamesRankAndReasonOnAllRanks) {
  const TestStore server;
  Worlds worlds = make_worlds(server, 4);
  const auto begin = Clock::now();
  const Errors errors = run_threads(4, [&](int rank) {
    std::vector<std::byte> memory;
    const WorkPtr work = worlds[rank]->endpoint().recv(rank, 1, into(memory));
    if (rank == 2) worlds[rank]->abort("the disk is full");
    wait_for(work);
  });
  EXPECT_LT(Clock::now() - begin, 2s);
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kCancelled);
    EXPECT_EQ(error->message(), "rank 2 has ended the world: the disk is full");
    EXPECT_EQ(error->context().peer, 2);
  }
}

// One that is well ends first, so that the others come.
TEST(ElasticWorld, RegroupsWithoutAFailure) {
  const TestStore server;
  Worlds worlds = make_worlds(server, 3);
  expect_no_errors(run_threads(3, [&](int rank) {
    std::vector<std::byte> memory;
    const WorkPtr work = worlds[rank]->endpoint().recv(rank, 1, into(memory));
    if (rank != 1) {
      EXPECT_THAT(error_of(work).message(), HasSubstr("rank 1 has ended the world"));
    }
    worlds[rank]->regroup();
    EXPECT_EQ(worlds[rank]->rank(), rank);
    EXPECT_EQ(worlds[rank]->generation(), 1);
    EXPECT_THAT(worlds[rank]->origins(), ElementsAre(0, 1, 2));
    worlds[rank]->shutdown();
  }));
}

TEST(ElasticWorld, RefusesMembersThatMakeNoSense) {
  const TestStore server;
  Worlds worlds = make_worlds(server, 2);
  const std::vector<std::vector<int>> bad = {{0, 0}, {0, 2}, {-1, 0}, {1}};
  for (const std::vector<int>& members : bad) {
    const Error error = error_of_call([&] { worlds[0]->regroup({.members = members}); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  }
  EXPECT_FALSE(worlds[0]->endpoint().failure().has_value());
}

}  // namespace
}  // namespace trireme::transport::test
