// Ranks that call different things over the network: all are told, soon, and the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/wire/collectives/network_world.h"
#include "tests/wire/endpoint/fake_peer.h"

namespace trireme::collectives::test {
namespace {

using kernels::ReduceOp;
using transport::test::expect_no_errors;

class NetworkFailureTest : public transport::test::OverBackend {};

INSTANTIATE_TEST_SUITE_P(Backends, NetworkFailureTest,
                         testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

/// Rank 2 of four calls `other`, the rest call `most`: all are told within 2 s.
void expect_difference(Backend backend, const std::function<void(NetworkRank&)>& most,
                       const std::function<void(NetworkRank&)>& other, const std::string& most_text,
                       const std::string& other_text) {
  const auto start = std::chrono::steady_clock::now();
  const Errors errors = run_network(backend, 4, [&](NetworkRank& rank) {
    rank.barrier();
    rank.rank() == 2 ? other(rank) : most(rank);
    // A rank may have been done before the others met the odd one.
    rank.barrier();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, kTimesSlower * std::chrono::seconds(2));
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kInvalidArgument) << error->what();
    EXPECT_EQ(error->message(), errors[0]->message());
    EXPECT_THAT(error->message(), testing::HasSubstr("the ranks call different operations"));
    EXPECT_THAT(error->message(), testing::HasSubstr("operation 1: " + most_text + " among"));
    EXPECT_THAT(error->message(),
                testing::HasSubstr("rank 2 operation 1: " + other_text + " among"));
    EXPECT_EQ(error->context().group, "net");
  }
}

std::function<void(NetworkRank&)> reduce_f32(std::int64_t count, const Description& description) {
  return [count, description](NetworkRank& rank) {
    std::vector<float> data(count, 1);
    rank.all_reduce(std::span(data), description);
  };
}

std::function<void(NetworkRank&)> broadcast_from(int root, Algorithm algorithm) {
  return [root, algorithm](NetworkRank& rank) {
    std::vector<std::byte> data(100);
    rank.call({.description = {.operation = Collective::kBroadcast,
                               .count = 100,
                               .root = root,
                               .algorithm = algorithm},
               .data = {data, Dtype::kU8}});
  };
}

TEST_P(NetworkFailureTest, RanksThatDifferInAnythingAreTold) {
  const auto expect = [&](const auto&... all) { expect_difference(GetParam(), all...); };
  const Description ring{.algorithm = Algorithm::kRing, .order = Order::kAny};
  const Description halves{.algorithm = Algorithm::kHalvingDoubling};
  expect(reduce_f32(100, {}), reduce_f32(101, {}), "all_reduce of 100 f32",
         "all_reduce of 101 f32");
  expect(reduce_f32(100, {}), reduce_f32(100, {.reduce = ReduceOp::kMax}), "all_reduce of 100 f32",
         "all_reduce of 100 f32 by max");
  expect(reduce_f32(100, {}), reduce_f32(100, {.order = Order::kAny}), "all_reduce of 100 f32",
         "all_reduce of 100 f32 in any order");
  expect(reduce_f32(5, halves), reduce_f32(5, ring), "all_reduce of 5 f32 by halving_doubling",
         "all_reduce of 5 f32 by ring in any order");
  const auto reduce_i32 = [](NetworkRank& rank) {
    std::vector<std::byte> data(400);
    rank.all_reduce({data, Dtype::kI32}, {});
  };
  expect(reduce_f32(100, {}), reduce_i32, "all_reduce of 100 f32", "all_reduce of 100 i32");
}

// Each waits for a message that nobody will send, and no message goes between them.
TEST_P(NetworkFailureTest, RanksThatWouldNotMeetAreToldToo) {
  expect_difference(
      GetParam(), broadcast_from(0, Algorithm::kOneShot), broadcast_from(3, Algorithm::kOneShot),
      "broadcast of 100 u8 with root 0 by one_shot", "broadcast of 100 u8 with root 3 by one_shot");
  expect_difference(GetParam(), reduce_f32(100, {}), reduce_f32(0, {}), "all_reduce of 100 f32",
                    "all_reduce of 0 f32");
}

TEST_P(NetworkFailureTest, ASkippedCallIsTold) {
  const auto start = std::chrono::steady_clock::now();
  const Errors errors = run_network(GetParam(), 3, [&](NetworkRank& rank) {
    std::vector<double> data(1000, 1);
    if (rank.rank() != 1) rank.all_reduce(std::span(data), {});
    rank.barrier();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kInvalidArgument) << error->what();
    EXPECT_THAT(error->message(), testing::HasSubstr("operation 0: all_reduce of 1000 f64 among"));
    EXPECT_THAT(error->message(), testing::HasSubstr("rank 1 operation 0: barrier among"));
  }
}

TEST_P(NetworkFailureTest, ARankThatLeavesEarlyIsLost) {
  const auto start = std::chrono::steady_clock::now();
  const Errors errors = run_network(GetParam(), 3, [&](NetworkRank& rank) {
    rank.barrier();
    std::vector<double> data(1000, 1);
    if (rank.rank() != 1) rank.all_reduce(std::span(data), {});
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kPeerLost) << error->what();
    EXPECT_THAT(error->message(), testing::HasSubstr("rank 1 is lost"));
  }
}

// A rank that is merely late is waited for, however often the others tell what they do.
TEST_P(NetworkFailureTest, ALateRankIsNoDifference) {
  expect_no_errors(run_network(GetParam(), 3, [&](NetworkRank& rank) {
    std::vector<double> data(1000, 1);
    for (int round = 0; round < 3; ++round) {
      if (rank.rank() == round) std::this_thread::sleep_for(std::chrono::milliseconds(250));
      rank.all_reduce(std::span(data), {});
      rank.barrier();
    }
  }));
}

TEST_P(NetworkFailureTest, APartOfAnotherSizeIsTold) {
  const Errors errors = run_network(GetParam(), 2, [&](NetworkRank& rank) {
    std::vector<std::byte> mine(rank.rank() == 0 ? 10 : 12);
    std::vector<std::byte> other(11);
    const int own = rank.rank();
    std::vector<std::span<const std::byte>> send_parts(2);
    std::vector<std::span<std::byte>> recv_parts(2);
    send_parts[1 - own] = mine;
    recv_parts[1 - own] = other;
    rank.call({.description = {.operation = Collective::kAllToAll},
               .sends = send_parts,
               .recvs = recv_parts});
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error->message(), testing::HasSubstr("its recv gave memory for 11"));
  }
}

// Rank 1 has told that it waits in the same all_to_all, of which it gives rank 0 nothing; its next
// message must not be taken for that part.
TEST_P(NetworkFailureTest, AnOmittedPartIsNoSuccess) {
  const Errors errors = run_network(GetParam(), 3, [&](NetworkRank& rank) {
    if (rank.rank() == 2) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::vector<std::vector<std::byte>> out(3, std::vector<std::byte>(100, std::byte{7}));
    std::vector<std::vector<std::byte>> in(3, std::vector<std::byte>(100));
    std::vector<std::span<const std::byte>> send_parts(out.begin(), out.end());
    const std::vector<std::span<std::byte>> recv_parts(in.begin(), in.end());
    if (rank.rank() == 1) send_parts[0] = {};
    rank.call({.description = {.operation = Collective::kAllToAll},
               .sends = send_parts,
               .recvs = recv_parts});
    broadcast_from(1, Algorithm::kOneShot)(rank);
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kInvalidArgument) << error->what();
    EXPECT_THAT(error->message(), testing::HasSubstr("rank 0 operation 0: all_to_all"));
    EXPECT_THAT(error->message(), testing::HasSubstr("rank 1 operation 1: broadcast"));
  }
}

class NetworkFakePeer : public transport::test::FakePeer {};

// It is only compared: no memory of the size that its sender says is asked for.
TEST_F(NetworkFakePeer, AMessageOfAnotherOperationTakesNoMemory) {
  auto rank_0 = std::async(std::launch::async, [&] {
    NetworkRank rank(*endpoint, {0, 1}, std::chrono::seconds(20), 1);
    return transport::test::error_of_call([&] { broadcast_from(1, Algorithm::kOneShot)(rank); });
  });
  const auto credit = transport::test::read_bytes(socket, transport::internal::kHeaderBytes);
  transport::internal::FrameHeader header{};
  std::copy(credit.begin(), credit.end(), header.begin());
  const Description other{.operation = Collective::kBroadcast,
                          .count = std::int64_t{1} << 47,
                          .root = 1,
                          .group_size = 2,
                          .algorithm = Algorithm::kOneShot};
  send({.kind = transport::internal::FrameKind::kData,
        .tag = transport::internal::parse_frame(header).tag,
        .message_bytes = std::uint64_t{1} << 47,
        .envelope = to_bytes(other)},
       std::vector<std::byte>(1000));
  // The rest never comes: the call must not wait for it.
  const Error error = rank_0.get();
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << error.what();
  EXPECT_THAT(error.message(), testing::HasSubstr("the ranks call different operations"));
}

TEST(NetworkArguments, RefusesWhatContradictsTheCall) {
  const auto refusal_of = [](const Request& request) {
    const Errors errors =
        run_network(Backend::kSim, 1, [&](NetworkRank& rank) { rank.call(request); });
    EXPECT_TRUE(errors[0].has_value());
    return errors[0] ? errors[0]->message() : "no error";
  };
  std::vector<float> data(10);
  using testing::HasSubstr;
  Request request{.description = {.operation = Collective::kAllReduce,
                                  .dtype = Dtype::kF32,
                                  .count = 10,
                                  .algorithm = Algorithm::kRing},
                  .data = std::span(data)};
  EXPECT_THAT(refusal_of(request), HasSubstr("ring cannot do"));
  request.description.count = 11;
  EXPECT_THAT(refusal_of(request), HasSubstr("all_reduce of 40 bytes of f32 in a call of"));
  request.description = {
      .operation = Collective::kReduce, .dtype = Dtype::kF32, .count = 10, .root = 1};
  EXPECT_THAT(refusal_of(request), HasSubstr("root 1 in a call of"));
  request.data.dtype = Dtype::kU8;
  request.description = {.operation = Collective::kAllGather, .count = 40};
  request.parts = {{0, 41}};
  EXPECT_THAT(refusal_of(request), HasSubstr("are one per rank"));
  request.description = {.operation = Collective::kAllToAll};
  EXPECT_THAT(refusal_of(request), HasSubstr("takes a part per rank and direction"));
}

}  // namespace
}  // namespace trireme::collectives::test
