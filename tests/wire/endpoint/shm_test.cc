#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "tests/base/error_of.h"
#include "tests/base/few_descriptors.h"
#include "tests/wire/bootstrap/stores.h"
#include "trireme/error.h"
#include "trireme/wire/endpoint/shm/local_mesh.h"
#include "trireme/wire/endpoint/shm/local_peers.h"
#include "trireme/wire/system/shared_memory.h"
#include "trireme/wire/system/signal.h"

namespace trireme::transport {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using trireme::test::error_of;

constexpr std::size_t kBytes = 3 * 4096;

TEST(LocalHosts, AreNumberedByTheirLowestRank) {
  const std::vector<std::string> said = {"a/1 x", "b/1 y",    "unknown ",
                                         "a/1 z", "unknown ", "b/1 w"};
  EXPECT_THAT(internal::hosts_of(said), testing::ElementsAre(0, 1, 2, 0, 4, 1));
}

// As of two containers that share the host's network: they could not hand each other memory.
TEST(LocalMesh, ARankOfAnotherUserIsOnAnotherHost) {
  const test::TestStore server;
  test::TestClient store(server.address(), 0);
  internal::LocalMesh mesh(
      {.store = store, .rank = 0, .deadline = std::chrono::steady_clock::now() + 300ms});
  const std::string own = mesh.publication();
  const std::string user = "/" + std::to_string(::getuid()) + " ";
  const std::size_t place = own.find(user);
  ASSERT_NE(place, std::string::npos) << own;
  std::string other = own;
  other.replace(place, user.size(), "/" + std::to_string(::getuid() + 1) + " ");
  EXPECT_EQ(mesh.connect(1, std::vector{own, other, std::string("unknown name")}).size(), 0U);
}

// The bytes come without the descriptor then.
TEST(LocalPeers, SayThatThisProcessIsOutOfDescriptors) {
  if (!trireme::test::kMayWantDescriptors) GTEST_SKIP() << "the sanitizer opens pipes";
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()),
            0);
  const auto peers_of = [](int rank, int socket) {
    std::map<int, Descriptor> sockets;
    sockets.emplace(rank, Descriptor(socket));
    return sockets;
  };
  LocalPeers giver(peers_of(4, ends[0]));
  LocalPeers taker(peers_of(3, ends[1]));
  giver.give(4, 7, SharedMemory::create("test", kBytes));
  std::optional<trireme::test::FewDescriptors> few(0);
  const Error error = error_of([&] { taker.take(3, 7, 20s); });
  few.reset();
  EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
  EXPECT_THAT(error.message(), HasSubstr("shared memory of rank 3; raise the limit (ulimit -n)"));
}

}  // namespace
}  // namespace trireme::transport
