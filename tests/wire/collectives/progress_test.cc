// How operations go on: several at once, one after another, with callers that are elsewhere.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <random>
#include <thread>
#include <vector>

#include "tests/wire/collectives/group_world.h"

namespace trireme::collectives::test {
namespace {

using kernels::ReduceOp;
using transport::test::expect_no_errors;
using transport::test::random_bytes;
using transport::test::wait_for;
using Bytes = std::vector<std::byte>;

class Progress : public transport::test::OverBackend {
 protected:
  static void run(int num_ranks, const std::function<void(Group&)>& body) {
    expect_no_errors(run_group(GetParam(), num_ranks, body));
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, Progress, testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

TEST_P(Progress, SendAndRecvBesideThem) {
  run(3, [&](Group& group) {
    const int own = group.group_rank();
    const Bytes mine = random_bytes(own, 10'000);
    Bytes got(10'000);
    std::vector<float> data(100, 1);
    const WorkPtr works[] = {group.send((own + 1) % 3, mine), group.all_reduce(std::span(data)),
                             group.recv((own + 2) % 3, got)};
    for (const WorkPtr& work : works) wait_for(work);
    EXPECT_EQ(got, random_bytes((own + 2) % 3, 10'000));
    EXPECT_EQ(data, std::vector<float>(100, 3));
  });
}

TEST_P(Progress, ManyInARowOfAnySize) {
  run(3, [&](Group& group) {
    std::mt19937 sizes(5), delays(group.group_rank());
    const std::span<std::byte> shared = group.allocate(1 << 19);
    // Tiny buffers make large messages wait for the system's timers.
    const int num_rounds = GetParam() == Backend::kTcpTinyBuffers ? 20 : 500;
    for (int i = 0; i < num_rounds; ++i) {
      const std::size_t count = std::size_t{1} << (sizes() % 18);
      std::vector<float> own(count);
      const bool is_shared = sizes() % 3 == 0;
      const std::span<float> data =
          is_shared ? std::span(reinterpret_cast<float*>(shared.data()), count) : std::span(own);
      std::fill(data.begin(), data.end(), static_cast<float>(i + group.group_rank()));
      if (delays() % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
      wait_for(group.all_reduce(data));
      const float expected = static_cast<float>(3 * i + 3);
      ASSERT_EQ(data.front(), expected);
      ASSERT_EQ(data.back(), expected);
    }
  });
}

TEST_P(Progress, GoOnWhileTheirCallerIsElsewhere) {
  std::latch has_ended(1);
  run(3, [&](Group& group) {
    std::vector<float> large(3'000'000, 1);
    wait_for(group.barrier());
    const WorkPtr work = group.all_reduce(std::span(large));
    // The others neither wait nor look until rank 0's has ended, before the group's deadline.
    if (group.group_rank() > 0) has_ended.wait();
    try {
      wait_for(work);
    } catch (...) {
      if (group.group_rank() == 0) has_ended.count_down();
      throw;
    }
    if (group.group_rank() == 0) has_ended.count_down();
    EXPECT_EQ(large.back(), 3);
  });
}

// The group's thread is still busy with the second one then.
TEST_P(Progress, TheFirstEndsBeforeTheSecond) {
  run(2, [&](Group& group) {
    std::vector<float> first(300'000, 1), second(300'000, 1);
    std::byte ready{};
    if (group.group_rank() == 1) {
      wait_for(group.all_reduce(std::span(first)));
      wait_for(group.recv(0, {&ready, 1}));
      wait_for(group.all_reduce(std::span(second)));
    } else {
      const WorkPtr one = group.all_reduce(std::span(first));
      const WorkPtr two = group.all_reduce(std::span(second));
      wait_for(one);
      wait_for(group.send(1, {&ready, 1}));
      wait_for(two);
    }
    EXPECT_EQ(second.back(), 2);
  });
}

// A watchdog that looks at works must not do their sums: the group's thread goes on with them.
TEST_P(Progress, WhoLooksDoesNoneOfTheWork) {
  if (!transport::test::shares_memory(GetParam())) GTEST_SKIP() << "its thread does all";
  run(2, [&](Group& group) {
    std::vector<float> data(1000, 1);  // little enough to be left to whoever waits
    wait_for(group.barrier());
    if (group.group_rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return wait_for(group.all_reduce(std::span(data)));
    }
    const WorkPtr work = group.all_reduce(std::span(data));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_FALSE(work->is_done());
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!work->is_done() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_TRUE(work->is_done());
    EXPECT_EQ(data.back(), 2);
  });
}

// Who listens does not wait; the group has to tell.
TEST_P(Progress, TellTheirEnd) {
  run(2, [&](Group& group) {
    if (group.group_rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto completions = std::make_shared<transport::Completions>();
    const WorkPtr work = group.barrier();
    work->tell_end(completions, 7);
    EXPECT_THAT(completions->take(std::chrono::steady_clock::now() + std::chrono::seconds(20)),
                testing::ElementsAre(7));
  });
}

TEST_P(Progress, OfGroupsThatComeAfterEachOther) {
  Endpoints endpoints = transport::test::make_world(GetParam(), 2);
  transport::test::expect_no_errors(transport::test::run_ranks(endpoints, [](Endpoint& endpoint) {
    for (int round = 0; round < 3; ++round) {
      Group group(endpoint, {0, 1}, {.name = "again", .id = 4});
      std::byte word{};
      const int other = 1 - group.group_rank();
      // Of the first group only messages, so that memory which was handed over stays where it is.
      const WorkPtr send = group.send(other, {&word, 1});
      wait_for(group.recv(other, {&word, 1}));
      wait_for(send);
      if (round == 0) continue;
      std::vector<float> data(10, 1);
      wait_for(group.all_reduce(std::span(data)));
      EXPECT_EQ(data[9], 2);
    }
  }));
}

TEST_P(Progress, WhatCannotBeIsRefused) {
  run(2, [&](Group& group) {
    Bytes data(16);
    const auto message = [](const std::function<void()>& call) {
      return transport::test::error_of_call(call).message();
    };
    const std::vector<std::int64_t> wrong = {1, 2};
    EXPECT_THAT(message([&] { group.all_reduce({std::span(data).first(15), Dtype::kF32}); }),
                testing::HasSubstr("a buffer of f32 has 15 bytes"));
    EXPECT_THAT(message([&] { group.all_reduce({std::span(data).subspan(1, 4), Dtype::kF32}); }),
                testing::HasSubstr("expected whole, aligned elements"));
    EXPECT_EQ(message([&] { group.all_reduce({data, Dtype::kF32}, ReduceOp::kXor); }),
              "there is no xor of f32");
    EXPECT_EQ(message([&] { group.reduce({data, Dtype::kF32}, 2); }),
              "there is no group rank 2 among 2");
    EXPECT_EQ(message([&] { group.reduce_scatter({data, Dtype::kF32}, wrong); }),
              "the 2 parts of a reduce_scatter have 3 elements; expected 2 parts with 4");
    EXPECT_EQ(message([&] { group.all_gather(data, data); }),
              "the 2 parts of an all_gather have 32 elements; expected 2 parts with 16");
    EXPECT_EQ(message([&] { group.all_gather(std::span(data).subspan(4, 8), data); }),
              "what this rank gives to an all_gather is its part of the result, or apart from it");
    EXPECT_THAT(message([&] { group.all_to_all(Sends(1), Receives(2)); }),
                testing::HasSubstr("expected a part for each of 2 ranks, got 1 to send"));
    Bytes odd(15);
    EXPECT_THAT(message([&] { group.all_to_all(odd, std::span(odd)); }),
                testing::HasSubstr("of one size that it divides, got 15 and 15 bytes"));
  });
}

}  // namespace
}  // namespace trireme::collectives::test
