// Hashes of the replicas' state, which ride in the next operation.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/wire/collectives/group_world.h"

namespace trireme::collectives::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using transport::test::expect_no_errors;
using transport::test::wait_for;

class HashTest : public transport::test::OverBackend {};

INSTANTIATE_TEST_SUITE_P(Backends, HashTest, testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

/// Each rank gives the hash of its number, none where that is 0, and calls `operation`; all fail
/// alike.
Error common_error(Backend backend, const std::vector<std::uint64_t>& hashes,
                   const std::function<WorkPtr(Group&)>& operation) {
  const auto start = std::chrono::steady_clock::now();
  const Errors errors = run_group(backend, static_cast<int>(hashes.size()), [&](Group& group) {
    wait_for(group.barrier());
    if (hashes[group.group_rank()] != 0) group.attach_hash(hashes[group.group_rank()]);
    wait_for(operation(group));
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, kTimesSlower * 2s);
  Error first(ErrorKind::kTimeout, "no error");
  for (const auto& error : errors) {
    if (!error.has_value()) {
      ADD_FAILURE() << "a rank has no error";
      continue;
    }
    if (first.message() == "no error") first = *error;
    EXPECT_EQ(error->message(), first.message());
  }
  return first;
}

WorkPtr sum_of_1000(Group& group) {
  thread_local std::vector<float> data;
  data.assign(1000, 1);
  return group.all_reduce(std::span(data));
}

WorkPtr barrier_of(Group& group) { return group.barrier(); }

TEST_P(HashTest, TheOneThatDiffersIsNamed) {
  const Error error = common_error(GetParam(), {7, 7, 9, 7}, sum_of_1000);
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
  EXPECT_EQ(error.context().peer, 2);
  EXPECT_THAT(error.message(),
              HasSubstr("group data: rank 2 differs from the others in the hash of their state "
                        "before operation 1: all_reduce of 1000 f32"));
  EXPECT_THAT(error.message(), HasSubstr("ranks 0, 1, 3: 0x0000000000000007"));
  EXPECT_THAT(error.message(), HasSubstr("rank 2: 0x0000000000000009"));
}

TEST_P(HashTest, SeveralThatDifferAreNamed) {
  const Error error = common_error(GetParam(), {5, 7, 7, 7, 9}, barrier_of);
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
  EXPECT_THAT(error.message(), HasSubstr("ranks 0, 4 differ from the others"));
}

TEST_P(HashTest, WithoutAMajorityAllAreNamed) {
  const Error error = common_error(GetParam(), {7, 9}, sum_of_1000);
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
  EXPECT_FALSE(error.context().peer.has_value());
  EXPECT_THAT(error.message(), HasSubstr("the ranks differ, and most agree on none"));
  EXPECT_THAT(error.message(), HasSubstr("(rank 0: 0x0000000000000007; rank 1: 0x"));
}

TEST_P(HashTest, WhoGivesNoneIsNamed) {
  const Error error = common_error(GetParam(), {7, 0, 7}, sum_of_1000);
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << error.what();
  EXPECT_THAT(error.message(), HasSubstr("rank 1 differs from the others"));
  EXPECT_THAT(error.message(), HasSubstr("(rank 1: none; ranks 0, 2: 0x0000000000000007)"));
}

TEST_P(HashTest, AlsoWhereSizesAreLarge) {
  const auto large = [](Group& group) {
    thread_local std::vector<double> data;
    data.assign(200'000, 1);
    return group.reduce_scatter(std::span(data));
  };
  EXPECT_THAT(common_error(GetParam(), {7, 7, 9}, large).message(),
              HasSubstr("rank 2 differs from the others"));
}

TEST_P(HashTest, ByAnyAlgorithm) {
  if (kTimesSlower > 1 && GetParam() == Backend::kOfi) {
    GTEST_SKIP() << "too slow for all ranks to be heard in time";
  }
  for (const Algorithm algorithm :
       {Algorithm::kOneShot, Algorithm::kTwoHop, Algorithm::kHalvingDoubling, Algorithm::kRing}) {
    const auto body = [](Group& group) {
      std::vector<float> data(40'000);
      group.attach_hash(group.group_rank() == 3 ? 1 : 2);
      wait_for(group.all_reduce(std::span(data)));
    };
    const Errors errors = run_group(
        GetParam(), 5, body, {.deadline = 20s, .order = Order::kAny, .algorithm = algorithm});
    for (const auto& error : errors) {
      ASSERT_TRUE(error.has_value());
      EXPECT_THAT(error->message(), HasSubstr("rank 3 differs from the others"))
          << to_text(algorithm);
    }
  }
}

// An operation with a root does not carry it: some ranks would not hear of each other.
TEST_P(HashTest, WaitsForAnOperationThatComparesAll) {
  const auto body = [](Group& group) {
    std::vector<std::byte> word(8);
    group.attach_hash(group.group_rank() == 1 ? 1 : 2);
    wait_for(group.broadcast(word, 0));
    wait_for(group.barrier());
  };
  for (const auto& error : run_group(GetParam(), 3, body)) {
    ASSERT_TRUE(error.has_value());
    EXPECT_THAT(error->message(), HasSubstr("rank 1 differs from the others in the hash of their "
                                            "state before operation 1: barrier"));
  }
}

TEST_P(HashTest, EqualOnesDoNoHarm) {
  expect_no_errors(run_group(GetParam(), 3, [](Group& group) {
    for (int step = 0; step < 20; ++step) {
      std::vector<float> data(step * 200, 1.0F);
      group.attach_hash(step);
      group.attach_hash(step + 1);
      wait_for(group.all_reduce(std::span(data)));
      EXPECT_TRUE(data.empty() || data.back() == 3);
      wait_for(group.all_reduce(std::span(data)));
    }
  }));
}

TEST(Hash, OrderMattersWhereThereAreSeveral) {
  const auto body = [](Group& group) {
    const bool is_first = group.group_rank() == 0;
    group.attach_hash(is_first ? 1 : 2);
    group.attach_hash(is_first ? 2 : 1);
    wait_for(group.barrier());
  };
  for (const auto& error : run_group(Backend::kSimShared, 2, body)) EXPECT_TRUE(error.has_value());
}

}  // namespace
}  // namespace trireme::collectives::test
