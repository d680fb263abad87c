// What fails in a group ends that group and its children on all their ranks, and nothing else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/wire/collectives/group_world.h"

namespace trireme::collectives::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using transport::test::error_of;
using transport::test::error_of_call;
using transport::test::expect_no_errors;
using transport::test::make_world;
using transport::test::random_bytes;
using transport::test::run_ranks;
using transport::test::wait_for;
using Clock = std::chrono::steady_clock;

class GroupDomain : public transport::test::OverBackend {
 protected:
  /// Four ranks; all of them can still work together afterwards.
  static void run(const std::function<void(Endpoint&)>& body) {
    Endpoints endpoints = make_world(GetParam(), 4);
    expect_no_errors(run_ranks(endpoints, [&](Endpoint& endpoint) {
      body(endpoint);
      {
        Group all(endpoint, first_ranks(4), {.name = "all", .id = 77, .deadline = 20s});
        std::vector<float> data(100'000, 1);
        wait_for(all.all_reduce(std::span(data)));
        EXPECT_EQ(data, std::vector<float>(100'000, 4));
      }
      EXPECT_FALSE(endpoint.failure());
      endpoint.shutdown(20s);
    }));
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, GroupDomain, testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

TEST_P(GroupDomain, ATimeoutEndsItsGroupAlone) {
  run([](Endpoint& endpoint) {
    const int pair = endpoint.rank() / 2 * 2;
    Group group(endpoint, {pair, pair + 1},
                {.name = "pair", .id = 5 + static_cast<std::uint64_t>(pair), .deadline = 300ms});
    wait_for(Group(endpoint, first_ranks(4), {.id = 9}).barrier());  // all have made theirs
    if (endpoint.rank() == 1) {
      EXPECT_EQ(failure_soon(group).kind(), ErrorKind::kTimeout);
      EXPECT_EQ(error_of(group.barrier()).kind(), ErrorKind::kTimeout);
    } else if (endpoint.rank() == 0) {
      const Error error = error_of(group.barrier());
      EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
      EXPECT_THAT(error.message(), HasSubstr("waited 300 ms for rank 1"));
      EXPECT_EQ(error_of(group.barrier()).message(), error.message());
    } else {
      for (int i = 0; i < 20; ++i) wait_for(group.barrier());
    }
  });
}

TEST_P(GroupDomain, ChildrenEndWithTheirParent) {
  run([](Endpoint& endpoint) {
    const int rank = endpoint.rank();
    Group other(endpoint, first_ranks(4), {.name = "other", .id = 9});
    Group parent(endpoint, first_ranks(4), {.name = "parent", .id = 5});
    std::optional<Group> child, sibling;
    if (rank < 2)
      child.emplace(endpoint, std::vector{0, 1},
                    GroupOptions{.name = "child", .id = 6, .parent = &parent});
    if (rank < 2) sibling.emplace(endpoint, std::vector{0, 1}, GroupOptions{.id = 7});
    wait_for(other.barrier());  // all have made theirs
    if (rank == 3) parent.abort("no disk");
    if (rank >= 2) return;
    const Error error = failure_soon(*child);
    EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
    EXPECT_EQ(error.message(), "rank 3 has ended group 'parent': no disk");
    EXPECT_EQ(error_of(child->barrier()).message(), error.message());
    wait_for(sibling->barrier());
    const auto of_failed = [&] {
      const Group late(endpoint, {0, 1}, {.id = 8, .parent = &parent});
    };
    EXPECT_EQ(error_of_call(of_failed).message(), error.message());
    EXPECT_EQ(error_of_call([&] { child->allocate(100); }).message(), error.message());
  });
}

TEST_P(GroupDomain, AChildHasRanksOfItsParent) {
  run([](Endpoint& endpoint) {
    if (endpoint.rank() > 1) return;
    const Group parent(endpoint, {0, 1}, {.name = "parent", .id = 5});
    EXPECT_EQ(error_of_call([&] {
                const Group child(endpoint, {0, 1, 2}, {.id = 6, .parent = &parent});
              }).kind(),
              ErrorKind::kInvalidArgument);
  });
}

// Lent memory is free afterwards, and what others send on the same connections is whole.
TEST_P(GroupDomain, EndsInTheMiddleOfMessages) {
  run([](Endpoint& endpoint) {
    const int rank = endpoint.rank();
    Group other(endpoint, first_ranks(4), {.name = "other", .id = 6, .deadline = 20s});
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      std::mt19937_64 random(seed);  // the same on all ranks
      Group group(endpoint, first_ranks(4), {.name = "failing", .id = 5, .deadline = 20s});
      wait_for(other.barrier());  // all have made theirs
      std::vector<std::vector<std::byte>> sent, received(4);
      std::vector<WorkPtr> works;
      for (int peer = 0; peer < 4; ++peer) {
        const std::size_t bytes = std::size_t{1} << (8 + random() % 15);
        sent.push_back(random_bytes(seed, bytes));
        received[peer].resize(bytes);
      }
      for (int peer = 0; peer < 4; ++peer) {
        if (peer == rank) continue;
        for (int i = 0; i < 3; ++i) works.push_back(group.send(peer, sent[rank]));
        for (int i = 0; i < 2; ++i) works.push_back(group.recv(peer, received[peer]));
      }
      const auto delay = std::chrono::microseconds(random() % 2000);
      if (rank == static_cast<int>(random() % 4)) {
        std::this_thread::sleep_for(delay);
        group.abort("stop");
      }
      std::vector<float> data(200'000, 1);
      const WorkPtr sum = other.all_reduce(std::span(data));
      for (const WorkPtr& work : works) {
        try {
          wait_for(work);
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kCancelled) << error.what();
        }
        EXPECT_TRUE(work->is_done());
      }
      EXPECT_EQ(failure_soon(group).kind(), ErrorKind::kCancelled);
      wait_for(sum);
      ASSERT_EQ(data, std::vector<float>(200'000, 4)) << "seed " << seed;
    }
  });
}

TEST_P(GroupDomain, AMessageOfAnotherSizeEndsItsGroup) {
  run([](Endpoint& endpoint) {
    if (endpoint.rank() > 1) return;
    Group group(endpoint, {0, 1}, {.name = "pair", .id = 5, .deadline = 20s});
    for (const std::size_t bytes : {100, 1'000'000}) {
      Group pair(endpoint, {0, 1}, {.name = "pair", .id = 6, .deadline = 20s});
      wait_for(group.barrier());  // both have made theirs
      std::vector<std::byte> data(bytes);
      if (endpoint.rank() == 0) {
        try {
          wait_for(pair.send(1, data));
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
        }
      } else {
        std::vector<std::byte> memory(bytes + 1);
        EXPECT_THAT(error_of(pair.recv(0, memory)).message(),
                    HasSubstr("its recv gave memory for"));
      }
      EXPECT_EQ(failure_soon(pair).kind(), ErrorKind::kInvalidArgument);
      EXPECT_EQ(failure_soon(pair).context().peer, 0);
    }
    wait_for(group.barrier());
  });
}

// They waited for each other until the deadline.
TEST_P(GroupDomain, RanksThatMakeDifferentGroupsAreTold) {
  if (GetParam() != Backend::kTcp && GetParam() != Backend::kSimShared) {
    GTEST_SKIP() << "takes two seconds; by messages and by shared memory is enough";
  }
  run([](Endpoint& endpoint) {
    const int rank = endpoint.rank();
    if (rank > 1) return;
    const Group same(endpoint, {0, 1}, {.name = "same", .id = 4});
    const auto order = rank == 0 ? std::vector{0, 1} : std::vector{1, 0};
    Group group(endpoint, order, {.name = rank == 0 ? "left" : "right", .id = 5, .deadline = 60s});
    const auto start = Clock::now();
    const Error error = error_of(group.barrier());
    EXPECT_LT(Clock::now() - start, 10s);
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("'left' of ranks 0 1"));
    EXPECT_THAT(error.message(), HasSubstr("'right' of ranks 1 0"));
  });
}

// A mistake that only this rank can see: the others waited for it until the deadline.
TEST_P(GroupDomain, AskedForWhatOneRankRefuses) {
  if (GetParam() != Backend::kTcp && GetParam() != Backend::kSimShared) {
    GTEST_SKIP() << "takes a second; by messages and by shared memory is enough";
  }
  run([](Endpoint& endpoint) {
    const int rank = endpoint.rank();
    if (rank > 1) return;
    Group group(endpoint, {0, 1}, {.name = "pair", .id = 5, .deadline = 60s});
    std::vector<float> data(100, 1);
    const auto refuse = [&] {
      const Error error =
          error_of_call([&] { group.all_reduce(std::span(data), scaled_sum(std::nan(""))); });
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    };
    if (rank == 1) refuse();
    wait_for(group.all_reduce(std::span(data), scaled_sum(1)));  // no harm to the next one
    if (rank == 1) {
      refuse();
      EXPECT_EQ(failure_soon(group).kind(), ErrorKind::kInvalidArgument);
      return;
    }
    const auto start = Clock::now();
    const Error error = error_of(group.all_reduce(std::span(data), scaled_sum(1)));
    EXPECT_LT(Clock::now() - start, 10s);
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("rank 1 has refused this operation"));
    EXPECT_THAT(error.message(), HasSubstr("the scale of a sum is no finite"));
  });
}

// Each waited for the other, and the deadline did not say in what.
TEST_P(GroupDomain, OppositeOrdersAreNamedAtTheDeadline) {
  run([](Endpoint& endpoint) {
    const int rank = endpoint.rank();
    if (rank > 1) return;
    Group left(endpoint, {0, 1}, {.name = "left", .id = 5, .deadline = 20s});
    Group right(endpoint, {0, 1}, {.name = "right", .id = 6, .deadline = 20s});
    wait_for(left.barrier());
    wait_for(right.barrier());
    Group& first = rank == 0 ? left : right;
    first.set_deadline(500ms);
    const Error error = error_of(first.barrier());
    EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
    EXPECT_THAT(error.message(), HasSubstr("waits for this rank in barrier of group '" +
                                           std::string(rank == 0 ? "right" : "left") + "'"));
  });
}

TEST_P(GroupDomain, DeadlinesHoldWhereNobodyWaits) {
  run([](Endpoint& endpoint) {
    const int rank = endpoint.rank();
    if (rank > 1) return;
    std::byte byte{};
    float one = 1;
    Group message(endpoint, {0, 1}, {.name = "message", .id = 5, .deadline = 200ms});
    Group operation(endpoint, {0, 1}, {.name = "operation", .id = 6, .deadline = 20s});
    WorkPtr work;
    wait_for(operation.barrier());  // both have made theirs
    if (rank == 0) {
      message.recv(1, {&byte, 1});
      operation.set_deadline(200ms);
      work = operation.all_reduce(std::span(&one, 1));
    }
    for (const Group* group : {&message, &operation}) {
      const Error error = failure_soon(*group);
      EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
      EXPECT_THAT(error.message(), HasSubstr("waited 200 ms for rank 1"));
      EXPECT_EQ(error.context().rank, 0);
    }
  });
}

}  // namespace
}  // namespace trireme::collectives::test
