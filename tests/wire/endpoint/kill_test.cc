// Real processes over tcp, one of which dies by kill -9 at each stage of a world's life.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "tests/wire/bootstrap/processes.h"
#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/endpoint/ofi_permit.h"
#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/endpoint/ofi/world.h"
#include "trireme/wire/endpoint/tcp/world.h"
#include "trireme/wire/endpoint/watch.h"

namespace trireme::transport::test {
namespace {

constexpr int kRanks = 4;
constexpr int kVictim = 2;

std::unique_ptr<Endpoint> connect(StoreClient& store) {
  return connect_tcp_world({.store = store, .rank = store.rank(), .world_size = kRanks});
}

TEST(Kill, BeforeItIsReachable) {
  expect_rank_2_named([](int rank, const Address& address, const auto& ready) {
    TestClient store(address, rank);
    ready();
    if (rank == kVictim) wait_to_be_killed();
    connect(store);
  });
}

// Killed in the middle of the start, after the address is known: whoever connects finds nobody.
TEST(Kill, BeforeItAccepts) {
  expect_rank_2_named([](int rank, const Address& address, const auto& ready) {
    TestClient store(address, rank);
    if (rank == kVictim) {
      store.set("world/address/2", "127.0.0.1:1");
      store.set("world/host/2", "none ");
      ready();
      wait_to_be_killed();
    }
    ready();
    connect(store);
  });
}

TEST(Kill, WhileNothingMoves) {
  expect_rank_2_named([](int rank, const Address& address, const auto& ready) {
    TestClient store(address, rank);
    const auto endpoint = connect(store);
    std::vector<std::byte> memory;
    // From a rank that lives, so that only the world's failure can end it.
    const WorkPtr work = endpoint->recv(rank == 0 ? 1 : 0, 1, into(memory));
    ready();
    if (rank == kVictim) wait_to_be_killed();
    await(message_work(*work, *endpoint, kVictim), {}, {.rank = rank});
  });
}

/// Large messages between all ranks, for ever.
void exchange_messages(Endpoint& endpoint, const std::function<void()>& ready) {
  const std::vector<std::byte> message(4 << 20);
  std::vector<std::vector<std::byte>> received(kRanks);
  for (int round = 0;; ++round) {
    std::vector<WorkPtr> works;
    for (int peer = 0; peer < kRanks; ++peer) {
      works.push_back(endpoint.recv(peer, 1, into(received[peer])));
      works.push_back(endpoint.send(peer, 1, message));
    }
    for (const WorkPtr& work : works) {
      await(message_work(*work, endpoint, kVictim), {}, {.rank = endpoint.rank()});
    }
    if (round == 0) ready();
  }
}

TEST(Kill, InTheMiddleOfMessages) {
  expect_rank_2_named([](int rank, const Address& address, const auto& ready) {
    TestClient store(address, rank);
    exchange_messages(*connect(store), ready);
  });
}

TEST(Kill, InTheMiddleOfMessagesOverLibfabric) {
  if (const auto& reason = why_no_ofi_test()) GTEST_SKIP() << reason->message();
  expect_rank_2_named([](int rank, const Address& address, const auto& ready) {
    TestClient store(address, rank);
    const auto endpoint = connect_ofi_world(
        {.tcp = {.store = store, .rank = rank, .world_size = kRanks}, .provider = kOfiProvider});
    exchange_messages(*endpoint, ready);
  });
}

TEST(Kill, BetweenTwoMessages) {
  expect_rank_2_named([](int rank, const Address& address, const auto& ready) {
    TestClient store(address, rank);
    const auto endpoint = connect(store);
    std::vector<std::byte> memory;
    const std::vector<std::byte> message(1000);
    if (rank == kVictim) {
      for (const int peer : {0, 1, 3}) endpoint->send(peer, 1, message);
      ready();
      wait_to_be_killed();
    }
    for (int message = 0; message < 2; ++message) {
      const WorkPtr work = endpoint->recv(kVictim, 1, into(memory));
      await(message_work(*work, *endpoint, kVictim), {}, {.rank = rank});
      if (message == 0) ready();
    }
  });
}

TEST(Kill, DuringShutdown) {
  expect_rank_2_named([](int rank, const Address& address, const auto& ready) {
    TestClient store(address, rank);
    const auto endpoint = connect(store);
    ready();
    if (rank == kVictim) wait_to_be_killed();
    try {
      endpoint->shutdown(std::chrono::seconds(20));
    } catch (Error& error) {
      error.add({.rank = rank});
      throw;
    }
  });
}

}  // namespace
}  // namespace trireme::transport::test
