// Payloads that several connections share.

#include "trireme/wire/endpoint/tcp/flows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/endpoint/tcp/world.h"
#include "trireme/wire/system/byte_form.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using internal::FlowCarrier;
using internal::kFlowSegment;
using internal::PeerFlows;
using internal::Segment;
using testing::HasSubstr;

/// Both ends of some connections.
struct Ends {
  std::vector<Descriptor> left, right;

  explicit Ends(int count) {
    for (int i = 0; i < count; ++i) {
      int numbers[2] = {};
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, numbers), 0);
      left.emplace_back(numbers[0]);
      right.emplace_back(numbers[1]);
    }
  }
};

PendingWorkPtr new_work() { return std::make_shared<PendingWork>(nullptr); }

std::optional<Error> error_of_step(const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

TEST(Flows, WhicheverCanBeWrittenToTakesTheNextSegment) {
  Ends ends(3);
  PeerFlows sender(1, std::move(ends.left)), receiver(0, std::move(ends.right));
  constexpr std::size_t kSegments = 40;
  const auto data = random_bytes(1, (kSegments - 1) * kFlowSegment + 1000);
  std::vector<std::byte> memory(data.size());
  const auto sent = new_work(), received = new_work();
  receiver.receive(7, memory, received);
  sender.send(7, data, sent);
  const auto move = [&](std::vector<std::size_t> flows) {
    for (int i = 0; i < 2000 && !received->is_done(); ++i) {
      sender.write();
      for (const std::size_t flow : flows) receiver.read(flow);
    }
  };
  move({0, 2});  // nobody reads from flow 1
  EXPECT_FALSE(received->is_done());
  std::size_t num_there = 0;
  for (std::size_t begin = 0; begin < data.size(); begin += kFlowSegment) {
    const std::size_t bytes = std::min(kFlowSegment, data.size() - begin);
    num_there += std::equal(data.begin() + static_cast<std::ptrdiff_t>(begin),
                            data.begin() + static_cast<std::ptrdiff_t>(begin + bytes),
                            memory.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  EXPECT_EQ(num_there, kSegments - 1);
  move({1});
  EXPECT_TRUE(received->is_done());
  EXPECT_TRUE(sent->is_done());
  EXPECT_EQ(memory, data);
  EXPECT_FALSE(sender.has_work() || receiver.has_work());
}

/// What a receiver of a payload of 2.5 segments under key 7 says to these.
std::optional<Error> refusal_of(const std::vector<Segment>& segments) {
  Ends ends(1);
  PeerFlows receiver(3, std::move(ends.right));
  std::vector<std::byte> memory(5 * kFlowSegment / 2);
  receiver.receive(7, memory, new_work());
  return error_of_step([&] {
    for (const Segment& segment : segments) {
      FixedWriter<24> header;
      header.integer(segment.key).integer(segment.offset).integer(segment.bytes);
      write_some(ends.left[0], header.written());
      receiver.read(0);
      for (std::size_t left = segment.bytes; left > 0;) {
        left -=
            *write_some(ends.left[0], std::vector<std::byte>(std::min<std::size_t>(left, 4096)));
        receiver.read(0);
      }
    }
  });
}

TEST(Flows, RefuseWhatNobodyExpects) {
  const Segment first{.key = 7, .offset = 0, .bytes = kFlowSegment};
  const Segment last{.key = 7, .offset = 2 * kFlowSegment, .bytes = kFlowSegment / 2};
  EXPECT_FALSE(refusal_of({last, first}));
  const std::vector<std::vector<Segment>> wrong = {
      {{.key = 8, .offset = 0, .bytes = kFlowSegment}},
      {{.key = 7, .offset = 1, .bytes = kFlowSegment}},
      {{.key = 7, .offset = 0, .bytes = kFlowSegment + 1}},
      {{.key = 7, .offset = 0, .bytes = 0}},
      {{.key = 7, .offset = 2 * kFlowSegment, .bytes = kFlowSegment}},
      {{.key = 7, .offset = 3 * kFlowSegment, .bytes = kFlowSegment}},
      {{.key = 7, .offset = ~std::uint64_t{0} / kFlowSegment * kFlowSegment, .bytes = 1}},
      {first, first}};
  for (const auto& segments : wrong) {
    const auto error = refusal_of(segments);
    ASSERT_TRUE(error) << segments.back().offset << " " << segments.back().bytes;
    EXPECT_EQ(error->kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(error->what(), HasSubstr("rank 3 sent a segment of no message"));
  }
}

TEST(Flows, AreLostWhereOneEndsWithPayloadsUnderWay) {
  Ends ends(2);
  PeerFlows flows(3, std::move(ends.left));
  ends.right[0].reset();
  flows.read(0);  // nothing was under way
  const auto data = random_bytes(1, 1000);
  const auto sent = new_work();
  flows.send(1, data, sent);
  EXPECT_TRUE(sent->is_done()) << "the other flow takes it";
  std::vector<std::byte> memory(1000);
  flows.receive(1, memory, new_work());
  ends.right[1].reset();
  const auto error = error_of_step([&] { flows.read(1); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::kPeerLost);
  EXPECT_EQ(error->context().peer, 3);
  EXPECT_THAT(error_of_step([&] { flows.send(2, data, new_work()); })->what(),
              HasSubstr("all connections for its messages are closed"));
}

// Its connection may say why within 1 s.
TEST(Flows, TheLossOfAFlowIsHeldBack) {
  Ends ends(1);
  std::vector<std::vector<Descriptor>> by_rank(2);
  by_rank[1] = std::move(ends.left);
  FlowCarrier carrier(std::move(by_rank), 1);
  std::vector<std::byte> memory(1000);
  carrier.receive(1, memory, new_work());
  ends.right[0].reset();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_NO_THROW(carrier.progress());
  EXPECT_LE(carrier.next_progress(), std::chrono::steady_clock::now() + 1s);
  std::this_thread::sleep_until(carrier.next_progress());
  const auto error = error_of_step([&] { carrier.progress(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::kPeerLost);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 900ms);
}

TEST(Flows, AllRanksHaveAsMany) {
  const TestStore server;
  const Errors errors = run_threads(2, [&](int rank) {
    TestClient store(server.address(), rank);
    connect_tcp_world(
        {.store = store, .rank = rank, .world_size = 2, .deadline = 20s, .num_flows = 2 - rank});
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error->message(), HasSubstr("rank 0 moves messages by tcp*2, rank 1 by tcp*1"));
  }
}

}  // namespace
}  // namespace trireme::transport::test
