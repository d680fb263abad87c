// Ranks that mpirun starts, as two real processes.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/bootstrap/meeting.h"
#include "trireme/wire/endpoint/tcp/world.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;

/// Not a test of its own: what the ranks of the next one do.
TEST(Mpirun, DISABLED_BodyOfARank) {
  const auto environment = read_environment().ranks;
  ASSERT_TRUE(environment.has_value());
  ASSERT_EQ(environment->launcher, Launcher::kOpenMpi);
  const Meeting meeting =
      meet(*environment, std::chrono::steady_clock::now() + 20s, Logger(LogLevel::kWarning));
  const int rank = environment->rank;
  StoreClient store(meeting.store, rank, {}, meeting.token);
  const auto endpoint = connect_tcp_world(
      {.store = store, .rank = rank, .world_size = environment->world_size, .deadline = 20s});
  std::vector<std::byte> received;
  const std::vector<std::byte> message = random_bytes(static_cast<std::uint64_t>(rank), 1000);
  const WorkPtr sent = endpoint->send(1 - rank, 1, message);
  wait_for(endpoint->recv(1 - rank, 1, into(received)));
  wait_for(sent);
  EXPECT_EQ(received, random_bytes(static_cast<std::uint64_t>(1 - rank), 1000));
  store.set("done/" + std::to_string(rank), "");
  for (const char* key : {"done/0", "done/1"}) store.get(key, 20s);
  endpoint->shutdown(20s);
  store.shutdown();
}

// NOLINTBEGIN(bugprone-command-processor): words of this file alone
TEST(Mpirun, ItsRanksMeetByTheJobsId) {
  if (std::system("mpirun --version > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "mpirun is not installed";
  }
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = "timeout 60 mpirun --allow-run-as-root --oversubscribe -n 2 '" +
                              self +
                              "' --gtest_filter=Mpirun.DISABLED_BodyOfARank "
                              "--gtest_also_run_disabled_tests --gtest_brief=1";
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
// NOLINTEND(bugprone-command-processor)

}  // namespace
}  // namespace trireme::transport::test
