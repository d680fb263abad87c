// Ranks that differ, come too late, go away or give nonsense: nobody hangs, everyone is told.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/wire/collectives/group_world.h"
#include "trireme/wire/collectives/description.h"
#include "trireme/wire/collectives/members.h"

namespace trireme::collectives::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using transport::test::error_of;
using transport::test::error_of_call;
using transport::test::run_ranks;
using transport::test::shares_memory;
using transport::test::wait_for;
using Clock = std::chrono::steady_clock;

class GroupFailureTest : public transport::test::OverBackend {};

INSTANTIATE_TEST_SUITE_P(Backends, GroupFailureTest,
                         testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

using GroupCall = std::function<WorkPtr(Group&)>;

/// After two barriers ranks 0 and 1 call `most`, rank 2 calls `other`.
void expect_mismatch(Backend backend, const GroupCall& most, const GroupCall& other,
                     const std::string& most_text, const std::string& other_text) {
  const std::string text =
      "group data: the ranks call different operations: rank 0 operation 2: " + most_text +
      " among 3 ranks, rank 2 operation 2: " + other_text + " among 3 ranks;";
  const auto start = Clock::now();
  const auto body = [&](Group& group) {
    wait_for(group.barrier());
    wait_for(group.barrier());
    wait_for(group.group_rank() == 2 ? other(group) : most(group));
  };
  const Errors errors =
      run_group(backend, 3, body, {.deadline = 20s, .algorithm = Algorithm::kTwoHop});
  EXPECT_LT(Clock::now() - start, 2s);
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kInvalidArgument) << error->what();
    EXPECT_THAT(error->message(), HasSubstr(text));
    EXPECT_EQ(error->context().group, "data");
    EXPECT_EQ(error->context().sequence, 2);
    EXPECT_TRUE(error->context().rank.has_value());
  }
}

TEST_P(GroupFailureTest, RanksThatCallDifferentThings) {
  const auto reduce = [](std::size_t count) {
    return [data = std::make_shared<std::vector<float>>(count)](Group& group) {
      // One buffer per rank.
      thread_local std::vector<float> own;
      own.assign(data->size(), 1);
      return group.all_reduce(std::span(own));
    };
  };
  const GroupCall reduce_f64 = [](Group& group) {
    thread_local std::vector<double> own;
    own.assign(100, 1);
    return group.all_reduce(std::span(own));
  };
  const auto broadcast = [](int root) {
    return [root](Group& group) {
      thread_local std::vector<std::byte> own;
      own.resize(100);
      return group.broadcast(own, root);
    };
  };
  const GroupCall barrier = [](Group& group) { return group.barrier(); };
  const auto gather = [](std::vector<std::int64_t> counts) {
    return [counts](Group& group) {
      thread_local std::vector<std::byte> all;
      thread_local std::vector<std::byte> mine;  // lent until the work ends, as `all` is
      all.resize(300);
      mine.resize(static_cast<std::size_t>(counts[group.group_rank()]));
      return group.all_gather(mine, all, counts);
    };
  };
  const Backend backend = GetParam();
  expect_mismatch(backend, reduce(100), reduce(101), "all_reduce of 100 f32",
                  "all_reduce of 101 f32");
  expect_mismatch(backend, reduce(100), reduce_f64, "all_reduce of 100 f32",
                  "all_reduce of 100 f64");
  expect_mismatch(backend, reduce(100'000), barrier, "all_reduce of 100000 f32", "barrier");
  expect_mismatch(backend, barrier, broadcast(1), "barrier", "broadcast of 100 u8 with root 1");
  constexpr int kSizes = 681680293;  // a hash, as of 50, 150 and 100
  expect_mismatch(backend, gather({100, 100, 100}), gather({50, 150, 100}), "all_gather of 300 u8",
                  "all_gather of 300 u8 in parts of sizes no. " + std::to_string(kSizes));
  expect_mismatch(backend, broadcast(0), broadcast(1), "broadcast of 100 u8 with root 0",
                  "broadcast of 100 u8 with root 1");
}

TEST_P(GroupFailureTest, OtherReducersAreRefused) {
  Endpoints endpoints = make_world(GetParam(), 4);
  const Errors errors = run_ranks(endpoints, [](Endpoint& endpoint) {
    Group group(endpoint, first_ranks(4),
                {.name = "data", .id = 1, .num_reducers = endpoint.rank() == 3 ? 2 : 1});
    std::vector<float> data(100);
    wait_for(group.all_reduce(std::span(data)));
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kInvalidArgument) << error->what();
    EXPECT_THAT(error->message(), HasSubstr("all_reduce of 100 f32 with 1 reducers"));
    EXPECT_THAT(error->message(), HasSubstr("all_reduce of 100 f32 with 2 reducers"));
  }
}

TEST_P(GroupFailureTest, SomeRanksMustHaveData) {
  Endpoints endpoints = make_world(GetParam(), 2);
  for (const int num_reducers : {-1, 1, 2}) {
    const auto error = transport::test::error_of_call([&] {
      Group(*endpoints[0], first_ranks(2), {.name = "data", .id = 1, .num_reducers = num_reducers});
    });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("at least two must have data"));
  }
}

TEST_P(GroupFailureTest, ARankThatDoesNotComeIsNamed) {
  Endpoints endpoints = make_world(GetParam(), 3);
  const Errors errors = run_ranks(endpoints, [](Endpoint& endpoint) {
    Group group(endpoint, first_ranks(3), {.name = "data", .id = 1, .deadline = 300ms});
    if (endpoint.rank() == 1) {
      while (!group.failure()) std::this_thread::sleep_for(1ms);
      throw Error(*group.failure());
    }
    // Long enough for ranks 0 and 2 to meet on a busy host, over a fabric that connects on first
    // use.
    std::vector<float> data(100);
    wait_for(group.all_reduce(std::span(data)));
  });
  // Ranks 0 and 2 wait; whoever is first tells the others.
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kTimeout) << error->what();
    EXPECT_THAT(error->message(), HasSubstr("waited 300 ms for rank 1;"));
    EXPECT_EQ(error->context().operation, "all_reduce");
    EXPECT_EQ(error->context().sequence, 0);
    EXPECT_EQ(error->context().peer, 1);
    EXPECT_EQ(error->context().group, "data");
  }
}

// On shared memory the others waited for the whole deadline.
TEST_P(GroupFailureTest, AGoodbyeBeforeAnOperationIsALoss) {
  const auto start = Clock::now();
  const Errors errors = run_group(GetParam(), 3, [](Group& group) {
    wait_for(group.barrier());
    if (group.group_rank() != 2) wait_for(group.barrier());
  });
  EXPECT_LT(Clock::now() - start, 5s);
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(errors[rank].has_value());
    EXPECT_EQ(errors[rank]->kind(), ErrorKind::kPeerLost) << errors[rank]->what();
    EXPECT_THAT(errors[rank]->message(), HasSubstr("rank 2 is lost: it"));
  }
}

TEST_P(GroupFailureTest, AGroupSaysForWhomItWaits) {
  Endpoints endpoints = make_world(GetParam(), 3);
  std::vector<float> data(100);
  Group first(*endpoints[0], {2, 0, 1}, {.name = "data", .id = 1});
  EXPECT_EQ(first.missing(), std::vector<int>());
  const WorkPtr work = first.all_reduce(std::span(data));
  EXPECT_FALSE(work->wait_for(50ms));
  // Where memory is shared, all wait for the leader's first: that is rank 2.
  if (shares_memory(GetParam())) {
    EXPECT_EQ(first.missing(), std::vector<int>{2});
  } else {
    EXPECT_EQ(first.missing(), (std::vector<int>{1, 2}));
  }
  Group second(*endpoints[2], {2, 0, 1}, {.name = "data", .id = 1});
  std::vector<float> others(100);
  second.all_reduce(std::span(others));
  // Rank 2's data is not there either: it waits for rank 1 too.
  for (int i = 0; i < 1000 && first.missing() != std::vector<int>{1}; ++i) work->wait_for(10ms);
  EXPECT_EQ(first.missing(), std::vector<int>{1});
  const Error closed(ErrorKind::kCancelled, "enough");
  endpoints[0]->poison(closed);
  EXPECT_EQ(error_of(work).message(), "enough");
  EXPECT_EQ(first.missing(), std::vector<int>());
}

// Each hop had a deadline of its own, so that an operation could take three.
TEST(GroupDeadlineTest, OfAllHopsTogether) {
  Endpoints endpoints = make_world(Backend::kSim, 2);
  Group group(*endpoints[0], {0, 1},
              {.name = "data", .id = 1, .deadline = 2s, .algorithm = Algorithm::kTwoHop});
  std::vector<float> data(100);
  const auto start = Clock::now();
  const WorkPtr work = group.all_reduce(std::span(data));
  EXPECT_FALSE(work->wait_for(1500ms));
  // Rank 1's part comes late, and then nothing.
  const transport::Tag tag = transport::Tag{1} << 63 | message_id(1, {0, 1}, 0) << 3;
  const auto envelope = to_bytes(
      {.operation = Collective::kAllReduce, .dtype = Dtype::kF32, .count = 100, .group_size = 2});
  std::vector<std::byte> memory;
  wait_for(endpoints[1]->recv(0, tag, transport::test::into(memory)));
  const std::vector<std::byte> part(chunk_of(100, 2, 0).size() * sizeof(float));
  wait_for(endpoints[1]->send(0, tag, part, envelope));
  const Error error = error_of(work);
  EXPECT_LT(Clock::now() - start, 3s);
  EXPECT_THAT(error.message(), HasSubstr("waited 2000 ms for rank 1;"));
}

TEST_P(GroupFailureTest, AllThatFollowsFailsToo) {
  Endpoints endpoints = make_world(GetParam(), 2);
  const std::string text = "rank 1 is lost: its connection closed";
  Group group(*endpoints[0], {0, 1}, {.name = "data", .id = 1});
  std::vector<float> data(100);
  const WorkPtr first = group.all_reduce(std::span(data));
  const WorkPtr second = group.barrier();
  EXPECT_FALSE(first->wait_for(10ms));
  endpoints[1].reset();
  const Error error = error_of(first);
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_STREQ(error.what(), ("peer lost: " + text +
                              " (rank 0, peer 1, group data, operation all_reduce, sequence 0)")
                                 .c_str());
  EXPECT_EQ(error_of(second).message(), text);
  EXPECT_EQ(error_of(group.barrier()).message(), text);
  EXPECT_EQ(endpoints[0]->failure()->message(), text);
}

// A rank goes away in the middle of long sums.
TEST_P(GroupFailureTest, ALostRankIsNamedByAll) {
  Endpoints endpoints = make_world(GetParam(), 4);
  const Errors errors = run_ranks(endpoints, [&](Endpoint& endpoint) {
    const int rank = endpoint.rank();
    std::vector<float> data(50'000);  // outlives the group, whose operation still has it
    Group group(endpoint, first_ranks(4), {.name = "data", .id = 1});
    for (int round = 0; rank != 3 || round < 3; ++round) {
      if (round == 3) std::this_thread::sleep_for(50ms);  // or it might end well
      wait_for(group.all_reduce(std::span(data)));
    }
    group.all_reduce(std::span(data));  // and closes the group in the middle of it
  });
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(errors[rank].has_value());
    EXPECT_EQ(errors[rank]->kind(), ErrorKind::kCancelled) << errors[rank]->what();
    EXPECT_THAT(errors[rank]->message(), HasSubstr("closed with operations under way"));
    EXPECT_EQ(errors[rank]->context().group, "data");
  }
}

TEST_P(GroupFailureTest, RefusesBadArguments) {
  Endpoints endpoints = make_world(GetParam(), 3);
  Endpoint& endpoint = *endpoints[0];
  const std::vector<std::vector<int>> bad_ranks = {{}, {1, 2}, {0, 3}, {0, -1}, {0, 1, 1}};
  for (const std::vector<int>& ranks : bad_ranks) {
    const Error error = error_of_call([&] { const Group group(endpoint, ranks, {.name = "g"}); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_EQ(error.context().group, "g");
  }
  EXPECT_THROW(const Group group(endpoint, {0}, {.id = std::uint64_t{1} << 61}), Error);
  Group group(endpoint, {0, 1}, {.name = "g"});
  std::vector<std::byte> data(10);
  EXPECT_THROW(group.all_gather(data, data), Error);
  EXPECT_THROW(group.broadcast(data, 2), Error);
  EXPECT_THROW(group.broadcast(data, -1), Error);
}

TEST(Description, RoundTripAndRefusal) {
  const Description description{.sequence = 5,
                                .operation = Collective::kBroadcast,
                                .dtype = Dtype::kU8,
                                .count = 1LL << 40,
                                .root = 2,
                                .group_size = 3,
                                .algorithm = Algorithm::kRing,
                                .order = Order::kAny};
  EXPECT_EQ(parse_description(to_bytes(description)), description);
  EXPECT_EQ(to_text(description),
            "operation 5: broadcast of 1099511627776 u8 with root 2 by ring in any order among 3 "
            "ranks");
  for (const std::size_t i : {0, 12, 13, 14, 15}) {
    auto bytes = to_bytes(description);
    bytes[i] ^= std::byte{0x40};
    EXPECT_EQ(error_of_call([&] { parse_description(bytes); }).kind(), ErrorKind::kCorruptData);
  }
}

}  // namespace
}  // namespace trireme::collectives::test
