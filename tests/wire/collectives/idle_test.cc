// Ranks that wait leave the processor to others.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "tests/wire/bootstrap/processes.h"
#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/endpoint/tcp/world.h"

namespace trireme::collectives::test {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::microseconds kWait = 2s;

/// Of all threads of this process.
std::chrono::microseconds processor_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

class Idle : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Memory, Idle, testing::Bool(),
                         [](const auto& memory) { return memory.param ? "shared" : "apart"; });

// 1 % of two seconds, of a rank that waits in an operation and of one that has none.
TEST_P(Idle, WaitersLeaveTheProcessor) {
  transport::test::RankProcesses processes(
      3, [shares_memory = GetParam()](int rank, const transport::Address& address,
                                      const std::function<void()>& ready) {
        transport::test::TestClient store(address, rank);
        const auto endpoint = transport::connect_tcp_world(
            {.store = store, .rank = rank, .world_size = 3, .shares_memory = shares_memory});
        Group group(*endpoint, {0, 1, 2}, {.name = "data", .id = 1});
        transport::test::wait_for(group.barrier());
        std::this_thread::sleep_for(100ms);  // the naps after an operation are over
        ready();
        const auto before = processor_time();
        if (rank > 0) std::this_thread::sleep_for(kWait);
        const auto used = processor_time() - before;
        const auto start = std::chrono::steady_clock::now();
        transport::test::wait_for(group.barrier());
        const auto waited = std::chrono::steady_clock::now() - start;
        const auto all = rank == 0 ? processor_time() - before : used;
        if (rank == 0 && waited < kWait / 2) throw std::runtime_error("nobody was late");
        if (all > kWait / 100) throw std::runtime_error(std::to_string(all.count()) + " us used");
        endpoint->shutdown(20s);
        store.shutdown();
      });
  const transport::StoreServer server({}, transport::Token::for_tests());
  processes.meet_at(server.address());
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(processes.line_from(rank), "ready");
    EXPECT_EQ(processes.line_from(rank), "ended well") << rank;
  }
}

}  // namespace
}  // namespace trireme::collectives::test
