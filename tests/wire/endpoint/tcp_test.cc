// What only tcp can suffer: strangers at the door, peers that speak nonsense, a start that fails.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/endpoint/fake_peer.h"
#include "tests/wire/endpoint/worlds.h"
#include "trireme/wire/bootstrap/admission.h"
#include "trireme/wire/endpoint/tcp/frame.h"
#include "trireme/wire/endpoint/tcp/frame_io.h"
#include "trireme/wire/endpoint/tcp/hello.h"
#include "trireme/wire/system/byte_form.h"
#include "trireme/wire/system/socket.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using internal::Frame;
using internal::FrameKind;
using internal::Hello;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

TEST_F(FakePeer, MaySpeakTheProtocol) {
  const std::vector<std::byte> message = random_bytes(1, 10);
  send({.kind = FrameKind::kData, .tag = 5, .message_bytes = 10}, std::span(message).first(4));
  send({.kind = FrameKind::kData, .tag = 5, .sequence = 1, .message_bytes = 10, .offset = 4},
       std::span(message).subspan(4));
  wait_for(work);
  EXPECT_EQ(memory, message);
}

/// tcpi_segs_in of the kernel's tcp_info: the C library's ends before it.
std::uint32_t packets_received(const Descriptor& socket) {
  std::array<std::uint32_t, 36> info{};
  socklen_t size = sizeof info;
  EXPECT_EQ(getsockopt(socket.number(), IPPROTO_TCP, TCP_INFO, info.data(), &size), 0);
  EXPECT_EQ(size, sizeof info);
  return info.back();
}

// Each credit was a packet, with the cost of one, and took as much of a small window as 1 KiB.
TEST(FrameWriter, SmallFramesShareAPacket) {
  const Descriptor listener = listen_on({"127.0.0.1", 0});
  const Descriptor from = connect_to(local_address(listener), {});
  std::optional<Descriptor> to;
  while (!to) to = accept_from(listener);
  constexpr int kFrames = 20;
  internal::FrameWriter writer;
  for (int i = 0; i < kFrames; ++i) writer.queue_control({.kind = FrameKind::kCredit, .tag = 5});
  writer.write(from);
  EXPECT_TRUE(writer.is_idle());
  const std::size_t all = kFrames * internal::kHeaderBytes;
  EXPECT_EQ(read_bytes(*to, all).size(), all);
  EXPECT_LE(packets_received(*to), 6U);  // those of the connection's start too
}

TEST_F(FakePeer, Garbage) {
  write_some(socket, random_bytes(1, 1000));
  expect_corrupt("no frame");
}

TEST_F(FakePeer, SkipsAFrame) {
  send({.kind = FrameKind::kCredit, .sequence = 1});
  expect_corrupt("frame 1 where frame 0 should be");
}

TEST_F(FakePeer, SendsWhatNobodyAskedFor) {
  send({.kind = FrameKind::kData, .tag = 6});
  expect_corrupt("nobody asked for");
}

TEST_F(FakePeer, SendsAMessageInWrongPieces) {
  const std::vector<std::byte> piece(4);
  send({.kind = FrameKind::kData, .tag = 5, .message_bytes = 10}, piece);
  send({.kind = FrameKind::kData, .tag = 5, .sequence = 1, .message_bytes = 10, .offset = 5},
       piece);
  expect_corrupt("not under way");
}

// Without a carrier there are no offers, and without shared memory none to be read.
TEST_F(FakePeer, OffersAMessage) {
  send({.kind = FrameKind::kOffer, .tag = 5, .message_bytes = 10});
  expect_corrupt("an offer of what cannot be fetched");
}

TEST_F(FakePeer, OffersAMessageToBeRead) {
  send({.kind = FrameKind::kOffer, .tag = 5, .message_bytes = 10, .offset = 4096});
  expect_corrupt("an offer of what cannot be fetched");
}

TEST_F(FakePeer, HasTakenWhatWasNotOffered) {
  send({.kind = FrameKind::kTaken});
  expect_corrupt("an answer to what was not offered");
}

TEST_F(FakePeer, AcceptsWhatWasNotOffered) {
  send({.kind = FrameKind::kAccept, .offset = 1});
  expect_corrupt("an answer to what was not offered");
}

TEST_F(FakePeer, PoisonsWithGarbage) {
  send({.kind = FrameKind::kPoison}, random_bytes(1, 10));
  expect_corrupt("");
}

TEST_F(FakePeer, SpeaksAfterItsGoodbye) {
  work = nullptr;
  send({.kind = FrameKind::kGoodbye});
  send({.kind = FrameKind::kCredit, .sequence = 1});
  // Rank 0 was waiting for a message: that is the first cause.
  std::vector<std::byte> memory;
  EXPECT_THAT(error_of(endpoint->recv(1, 9, into(memory))).message(),
              HasSubstr("rank 1 is lost: it said goodbye with messages under way"));
}

// Else the end of this rank could reach others before its cause does.
TEST_F(FakePeer, IsWaitedForUntilItKnowsOfAFailure) {
  endpoint->poison(Error(ErrorKind::kIo, "stop"));
  const auto start = Clock::now();
  auto end = std::async(std::launch::async, [this] { endpoint.reset(); });
  EXPECT_FALSE(read_bytes(socket, internal::kHeaderBytes).empty());
  EXPECT_EQ(end.wait_for(50ms), std::future_status::timeout);
  send({.kind = FrameKind::kPoison}, error_to_bytes(Error(ErrorKind::kIo, "stop")));
  end.get();
  EXPECT_LT(Clock::now() - start, 900ms);
}

TEST_F(FakePeer, EndsInTheMiddleOfAFrame) {
  const std::vector<std::byte> half(10);
  write_some(socket,
             internal::to_bytes(Frame{
                 .kind = FrameKind::kData, .tag = 5, .payload_bytes = 20, .message_bytes = 20}));
  write_some(socket, half);
  socket.reset();
  EXPECT_EQ(error_of(work).message(), "rank 1 is lost: its connection closed");
}

// It could still be written to, for ever.
TEST_F(FakePeer, ClosesOneDirectionOnly) {
  ASSERT_EQ(::shutdown(socket.number(), SHUT_WR), 0);
  EXPECT_EQ(error_of(work).message(), "rank 1 is lost: its connection closed");
}

// ---- The start

// The owner may end its process as soon as it sees the failure. The endpoint's own thread, which
// tells it, is held up by a message that it delivers.
TEST_F(FakePeer, IsToldOfAFailureBeforeItsOwnerSeesIt) {
  constexpr Tag kDomain = Tag{1} << 63 | 8;
  const auto failure = endpoint->domains().open({kDomain, {0, 1}, {}});
  std::promise<void> release;
  std::vector<std::byte> received;
  endpoint->recv(0, 6, into(received), [&](const Envelope&) { release.get_future().wait(); });
  endpoint->send(0, 6, {});
  std::thread fails([&] { endpoint->domains().fail(kDomain, Error(ErrorKind::kIo, "on fire")); });
  std::thread releases([&] {
    std::this_thread::sleep_for(200ms);
    release.set_value();
  });
  while (!failure->error()) std::this_thread::yield();
  EXPECT_TRUE(wait_readable(socket, Clock::now()));
  fails.join();
  releases.join();
  EXPECT_EQ(next_frame(socket).kind, FrameKind::kFailed);
}

TEST(TcpStart, StrangersAreTurnedAway) {
  const TestStore server;
  std::vector<std::unique_ptr<Endpoint>> endpoints(2);
  std::promise<void> strangers_are_done;
  const auto done = strangers_are_done.get_future().share();
  auto strangers = std::async(std::launch::async, [&] {
    TestClient store(server.address(), 7);
    publish(store, 1);
    const Descriptor silent = knock_at_rank_0(store);
    const Descriptor garbage = connect_to_rank_0(store);
    write_some(garbage, random_bytes(3, 1000));
    EXPECT_TRUE(read_bytes(garbage, 1).empty());
    const Descriptor wrong_rank = connect_to_rank_0(store);
    EXPECT_EQ(say_hello(store, wrong_rank, {.rank = 0, .world_size = 2}).welcome,
              internal::Welcome::kWrongRank);
    const Descriptor wrong_world = connect_to_rank_0(store);
    write_some(wrong_world, to_bytes(Hello{.world_id = 1, .rank = 1, .world_size = 2}));
    EXPECT_EQ(read_bytes(wrong_world, 100).size(), sizeof(internal::HelloBytes));
    store.shutdown();
    strangers_are_done.set_value();
  });
  expect_no_errors(run_threads(2, [&](int rank) {
    TestClient store(server.address(), rank);
    if (rank == 1) done.wait();
    endpoints[rank] =
        connect_tcp_world({.store = store, .rank = rank, .world_size = 2, .shares_memory = false});
    endpoints[rank]->shutdown(20s);
    store.shutdown();
  }));
  strangers.get();
}

TEST(TcpStart, RanksMustAgreeOnTheSize) {
  const TestStore server;
  const Errors errors = run_threads(2, [&](int rank) {
    TestClient store(server.address(), rank);
    connect_tcp_world({.store = store, .rank = rank, .world_size = 2 + rank});
  });
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(errors[rank].has_value());
    EXPECT_EQ(errors[rank]->kind(), ErrorKind::kInvalidArgument) << errors[rank]->what();
    EXPECT_THAT(errors[rank]->message(), HasSubstr("a world of " + std::to_string(3 - rank)));
  }
}

TEST(TcpStart, ARankStartedTwiceIsRefused) {
  const TestStore server;
  TestClient store(server.address(), 1);
  auto rank_0 = std::async(std::launch::async, [&] {
    TestClient own_store(server.address(), 0);
    return error_of_call([&] {
      connect_tcp_world({.store = own_store, .rank = 0, .world_size = 3, .deadline = 300ms});
    });
  });
  publish(store, 1);
  publish(store, 2);
  const Descriptor first = connect_to_rank_0(store);
  EXPECT_EQ(say_hello(store, first, {.rank = 1, .world_size = 3}).welcome, internal::Welcome::kYes);
  const Error error =
      error_of_call([&] { connect_tcp_world({.store = store, .rank = 1, .world_size = 3}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("started twice?"));
  const Error late = rank_0.get();
  EXPECT_EQ(late.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(late.message(), HasSubstr("not connected to rank 2 within 300 ms"));
}

// Rank 1, connected to all, once named rank 0 as the lost one: rank 0 had only learnt of rank 2.
TEST(TcpStart, WhoIsConnectedLearnsWhyAnotherFails) {
  const TestStore server;
  TestClient store(server.address(), 1);
  auto rank_0 = std::async(std::launch::async, [&] {
    TestClient own_store(server.address(), 0);
    return error_of_call([&] {
      connect_tcp_world({.store = own_store, .rank = 0, .world_size = 3, .deadline = 300ms});
    });
  });
  publish(store, 1);
  publish(store, 2);
  const Descriptor socket = connect_to_rank_0(store);
  EXPECT_EQ(say_hello(store, socket, {.rank = 1, .world_size = 3}).welcome,
            internal::Welcome::kYes);
  EXPECT_EQ(next_frame(socket).kind, FrameKind::kPoison);
  EXPECT_EQ(error_from_bytes(read_bytes(socket, 100'000)).message(), rank_0.get().message());
}

TEST(TcpStart, ALostRankIsNamed) {
  TestStore server;
  auto lost = std::make_unique<TestClient>(server.address(), 2);
  const Clock::time_point start = Clock::now();
  auto end = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(100ms);  // the others are waiting by then, most likely
    lost.reset();
  });
  const Errors errors = run_threads(2, [&](int rank) {
    TestClient store(server.address(), rank);
    connect_tcp_world({.store = store, .rank = rank, .world_size = 3});
  });
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(errors[rank].has_value());
    EXPECT_EQ(errors[rank]->message(), "rank 2 is lost: its connection closed");
  }
  EXPECT_LT(Clock::now() - start, 2s);
  end.get();
}

TEST(TcpStart, SeveralWorldsInOneStore) {
  const TestStore server;
  expect_no_errors(run_threads(2, [&](int rank) {
    TestClient store(server.address(), rank);
    auto a = connect_tcp_world({.store = store, .rank = rank, .world_size = 2, .name = "a"});
    auto b = connect_tcp_world({.store = store, .rank = 1 - rank, .world_size = 2, .name = "b"});
    std::vector<std::byte> memory;
    const std::vector<std::byte> message = random_bytes(rank, 10);
    const WorkPtr sent = a->send(1 - rank, 1, message);
    wait_for(a->recv(1 - rank, 1, into(memory)));
    wait_for(sent);
    EXPECT_EQ(memory, random_bytes(1 - rank, 10));
    b->shutdown(20s);
    a->shutdown(20s);
    store.shutdown();
  }));
}

}  // namespace
}  // namespace trireme::transport::test
