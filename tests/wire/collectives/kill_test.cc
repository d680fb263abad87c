// Real processes over tcp, one of which dies by kill -9 in the middle of sums.

#include <gtest/gtest.h>

#include <vector>

#include "tests/wire/transport/processes.h"
#include "tests/wire/transport/ranks.h"
#include "tests/wire/transport/stores.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/transport/tcp/world.h"

namespace trireme::collectives::test {
namespace {

TEST(Kill, InTheMiddleOfACollective) {
  transport::test::expect_rank_2_named(
      [](int rank, const transport::Address& address, const auto& ready) {
        transport::test::TestClient store(address, rank);
        const auto endpoint =
            transport::connect_tcp_world({.store = store, .rank = rank, .world_size = 4});
        Group group(*endpoint, {0, 1, 2, 3}, {.name = "data", .id = 1});
        std::vector<float> data(1'000'000);
        for (int round = 0;; ++round) {
          transport::test::wait_for(group.all_reduce(std::span(data)));
          if (round == 0) ready();
        }
      });
}

TEST(Kill, WhileTheOthersWaitInABarrier) {
  transport::test::expect_rank_2_named(
      [](int rank, const transport::Address& address, const auto& ready) {
        transport::test::TestClient store(address, rank);
        const auto endpoint =
            transport::connect_tcp_world({.store = store, .rank = rank, .world_size = 4});
        Group group(*endpoint, {0, 1, 2, 3}, {.name = "data", .id = 1});
        ready();
        if (rank == 2) transport::test::wait_to_be_killed();
        transport::test::wait_for(group.barrier());
      });
}

}  // namespace
}  // namespace trireme::collectives::test
