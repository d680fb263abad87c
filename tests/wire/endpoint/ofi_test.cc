// What only the transport over libfabric has: providers, offers, and a fabric that fails alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/endpoint/fake_peer.h"
#include "tests/wire/endpoint/ofi_permit.h"
#include "tests/wire/endpoint/worlds.h"
#include "trireme/wire/endpoint/elastic_world.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using internal::Frame;
using internal::FrameKind;
using testing::HasSubstr;

class Ofi : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto& reason = why_no_ofi_test()) GTEST_SKIP() << reason->message();
  }

  /// What the ranks of a world throw that differ in how they connect.
  static Errors errors_of_start(const std::vector<std::optional<std::string>>& providers) {
    const TestStore server;
    return run_threads(static_cast<int>(providers.size()), [&](int rank) {
      TestClient store(server.address(), rank);
      const auto endpoint = connect_world({.store = store,
                                           .rank = rank,
                                           .world_size = static_cast<int>(providers.size()),
                                           .deadline = 20s},
                                          providers[rank]);
      endpoint->shutdown(20s);  // or who is still connecting would lose this rank
    });
  }
};

TEST_F(Ofi, AProviderThatIsNotThereEndsTheStartOfAll) {
  const Errors errors = errors_of_start({kOfiProvider, "nothing", kOfiProvider});
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kUnavailable);
    EXPECT_THAT(error->message(), HasSubstr("libfabric cannot use nothing at 127.0.0.1"));
    EXPECT_THAT(error->message(), HasSubstr("TRIREME_OFI_PROVIDER"));
    EXPECT_EQ(error->context().rank, 1);
  }
}

TEST_F(Ofi, RanksMustMoveMessagesTheSameWay) {
  for (const auto& error : errors_of_start({kOfiProvider, kOfiProvider, std::nullopt})) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error->message(),
                HasSubstr("rank 0 moves messages by tcp;ofi_rxm, rank 2 by tcp; set "));
  }
}

TEST_F(Ofi, TakesTheFirstProviderThatThereIs) {
  for (const auto& error : errors_of_start({"", ""})) EXPECT_FALSE(error) << error->what();
}

// Those of 64 KiB and more are read in the sender's process, where the kernel allows it.
TEST_F(Ofi, SomeOffersAreReadAndSomeComeByTheFabric) {
  const Endpoints endpoints = make_ofi_world(2, {.min_bytes = 1, .shares_memory = true});
  std::vector<WorkPtr> works;
  std::vector<std::vector<std::byte>> messages, memories(40);
  for (std::size_t i = 0; i < memories.size(); ++i) {
    messages.push_back(random_bytes(static_cast<int>(i), i % 2 == 0 ? 1000 + i : 200'000 + i));
  }
  for (std::size_t i = 0; i < memories.size(); ++i) {
    works.push_back(endpoints[1]->recv(0, 5, into(memories[i])));
    works.push_back(endpoints[0]->send(1, 5, messages[i]));
  }
  for (const WorkPtr& work : works) wait_for(work);
  EXPECT_EQ(memories, messages);
}

/// An address of libfabric's tcp at which nobody listens.
std::string dead_fabric() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(1);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string bytes(sizeof address, '\0');
  std::memcpy(bytes.data(), &address, sizeof address);
  return std::string(kOfiProvider) + " " + bytes;
}

class FakeOfiPeer : public FakePeer {
 protected:
  FakeOfiPeer()
      : FakePeer(
            [](const TcpOptions& tcp) {
              if (why_no_ofi_test()) return connect_tcp_world(tcp);
              return connect_ofi_world(
                  {.tcp = tcp, .provider = kOfiProvider, .patience = 300ms, .min_bytes = 1000});
            },
            why_no_ofi_test() ? "" : dead_fabric()) {}

  void SetUp() override {
    if (const auto& reason = why_no_ofi_test()) GTEST_SKIP() << reason->message();
  }
};

TEST_F(FakeOfiPeer, IsOfferedLargeMessagesOnlyAndInOrder) {
  const std::vector<std::byte> large(1000);
  const std::vector<std::byte> small(999);
  Envelope envelope{};
  envelope[3] = std::byte{7};
  endpoint->send(1, 8, small);
  endpoint->send(1, 8, large, envelope);
  send({.kind = FrameKind::kCredit, .tag = 8});
  send({.kind = FrameKind::kCredit, .tag = 8, .sequence = 1});
  const Frame data = next_frame(socket);
  EXPECT_EQ(data.kind, FrameKind::kData);
  EXPECT_EQ(read_bytes(socket, 999).size(), 999U);
  const Frame expected{.kind = FrameKind::kOffer,
                       .tag = 8,
                       .sequence = data.sequence + 1,
                       .message_bytes = 1000,
                       .envelope = envelope};
  EXPECT_EQ(next_frame(socket), expected);
  endpoint.reset();  // the messages are lent to it
}

TEST_F(FakeOfiPeer, GetsANewKeyForEachOffer) {
  std::vector<std::byte> second;
  const WorkPtr other = endpoint->recv(1, 5, into(second));
  EXPECT_EQ(next_frame(socket).kind, FrameKind::kCredit);
  send({.kind = FrameKind::kOffer, .tag = 5, .message_bytes = 10});
  send({.kind = FrameKind::kOffer, .tag = 5, .sequence = 1, .message_bytes = 20});
  const Frame accepts[] = {next_frame(socket), next_frame(socket)};
  for (const Frame& accept : accepts) EXPECT_EQ(accept.kind, FrameKind::kAccept);
  EXPECT_NE(accepts[0].offset, accepts[1].offset);
  EXPECT_EQ(memory.size(), 10U);
  EXPECT_EQ(second.size(), 20U);
  // Its end is that of what is under way, whatever it said before.
  socket.reset();
  EXPECT_EQ(error_of(work).message(), "rank 1 is lost: its connection closed");
  EXPECT_EQ(error_of(other).message(), "rank 1 is lost: its connection closed");
}

TEST_F(FakeOfiPeer, OffersWhatNobodyAskedFor) {
  send({.kind = FrameKind::kOffer, .tag = 6, .message_bytes = 10});
  expect_corrupt("nobody asked for");
}

// What is under way when a goodbye comes may still end well: the fabric is not the connection.
TEST_F(FakeOfiPeer, MayLeaveOnlyAfterItsPayloads) {
  send({.kind = FrameKind::kOffer, .tag = 5, .message_bytes = 10});
  EXPECT_EQ(next_frame(socket).kind, FrameKind::kAccept);
  send({.kind = FrameKind::kGoodbye, .sequence = 1});
  EXPECT_FALSE(work->wait_for(50ms));
  socket.reset();
  EXPECT_EQ(error_of(work).message(), "rank 1 is lost: its connection closed");
}

// Its connection is well, its place in the fabric is not.
TEST_F(FakeOfiPeer, CannotBeReachedByTheFabric) {
  const std::vector<std::byte> large(100'000);
  const auto start = std::chrono::steady_clock::now();
  const WorkPtr sent = endpoint->send(1, 8, large);
  send({.kind = FrameKind::kCredit, .tag = 8});
  EXPECT_EQ(next_frame(socket).kind, FrameKind::kOffer);
  send({.kind = FrameKind::kAccept, .sequence = 1, .offset = 77});
  const Error error = error_of(sent);
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(error.message(), HasSubstr("rank 1 is lost: libfabric "));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
}

}  // namespace
}  // namespace trireme::transport::test
