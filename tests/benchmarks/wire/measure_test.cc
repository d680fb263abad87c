#include "benchmarks/wire/measure.h"

#include <gmock/gmock.h>

#include <mutex>

#include "benchmarks/wire/compare.h"
#include "benchmarks/wire/group_contender.h"
#include "tests/wire/collectives/group_world.h"

namespace trireme::bench {
namespace {

using collectives::Group;
using collectives::test::Backend;

/// Ours, but for what it prepares.
class Changed : public Contender {
 public:
  explicit Changed(Group& group) : right_(group) {}

  int rank() const override { return right_.rank(); }
  int num_ranks() const override { return right_.num_ranks(); }
  std::optional<std::span<std::byte>> registered(std::size_t) override { return std::nullopt; }
  void barrier() override { right_.barrier(); }

 protected:
  GroupContender& right() { return right_; }

 private:
  GroupContender right_;
};

/// Its results are damaged on one rank.
class Damaged final : public Changed {
 public:
  Damaged(Group& group, int bad_rank) : Changed(group), bad_rank_(bad_rank) {}

  std::optional<Prepared> prepare(const Case& one, const Buffers& buffers) override {
    auto prepared = right().prepare(one, buffers);
    if (!prepared || rank() != bad_rank_) return prepared;
    const auto run = prepared->run;
    const auto send = buffers.send;
    // One bit, the last of the mantissa of element 1.
    prepared->run = [run, send] {
      run();
      if (send.size() >= 8) send[4] ^= std::byte{1};
    };
    return prepared;
  }

 private:
  int bad_rank_;
};

/// What runs beside a sleep takes 30 ms more than that.
class Late final : public Changed {
 public:
  using Changed::Changed;

  std::optional<Prepared> prepare(const Case& one, const Buffers& buffers) override {
    auto prepared = right().prepare(one, buffers);
    prepared->run_beside_sleep = [run = prepared->run_beside_sleep](auto sleep) {
      run(sleep + std::chrono::milliseconds(30));
    };
    return prepared;
  }
};

/// Runs an order on threads as ranks; their answers by rank.
template <typename MakeContender>
std::vector<Answer> answers_of(int num_ranks, const Order& order, const MakeContender& make) {
  std::vector<Answer> answers(static_cast<std::size_t>(num_ranks));
  const auto errors = collectives::test::run_group(Backend::kSim, num_ranks, [&](Group& group) {
    auto contender = make(group);
    Memory memory;
    answers[static_cast<std::size_t>(group.group_rank())] = measure(contender, order, memory);
  });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
  return answers;
}

Order order_of(Collective operation, std::int64_t bytes) {
  return {.what = {.operation = operation, .bytes = bytes}, .iterations = 3, .warmups = 1};
}

TEST(BenchMeasure, OurResultsAreRight) {
  const auto make = [](Group& group) { return GroupContender(group); };
  for (const int num_ranks : {2, 3}) {
    for (const Collective operation :
         {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
          Collective::kAllToAll, Collective::kBroadcast, Collective::kBarrier}) {
      for (const std::int64_t bytes : {24, 2400}) {
        const bool has_data = operation != Collective::kBarrier;
        const auto answers = answers_of(num_ranks, order_of(operation, has_data ? bytes : 0), make);
        Result result;
        add_answers(result, operation, answers);
        EXPECT_EQ(result.unavailable, "") << collectives::to_text(operation);
        EXPECT_TRUE(result.is_right()) << collectives::to_text(operation) << " " << bytes;
        EXPECT_EQ(result.times_us.size(), 3);
        EXPECT_EQ(answers[0].digest.empty(), !is_same_everywhere(operation));
      }
    }
  }
}

TEST(BenchMeasure, ADamagedResultIsCounted) {
  const auto answers = answers_of(3, order_of(Collective::kAllReduce, 400),
                                  [](Group& group) { return Damaged(group, 2); });
  EXPECT_EQ(answers[0].wrong, 0);
  EXPECT_EQ(answers[2].wrong, 1);
  Result result;
  add_answers(result, Collective::kAllReduce, answers);
  EXPECT_EQ(result.wrong, 1);
  EXPECT_EQ(result.differing_ranks, 1);
  EXPECT_FALSE(result.is_right());
}

TEST(BenchMeasure, WhatACallAddsToASleep) {
  Order order = order_of(Collective::kAllReduce, 400);
  order.sleep_us = 5'000;
  const auto answers = answers_of(2, order, [](Group& group) { return Late(group); });
  ASSERT_EQ(answers[0].times_us.size(), 3);
  for (const double time : answers[0].times_us) EXPECT_GT(time, 20'000);
  EXPECT_EQ(answers[0].wrong, 0);
}

/// Counts its calls.
class Counted final : public Changed {
 public:
  using Changed::Changed;

  std::optional<Prepared> prepare(const Case& one, const Buffers& buffers) override {
    auto prepared = right().prepare(one, buffers);
    prepared->run = [this, run = prepared->run] {
      ++num_calls;
      run();
    };
    return prepared;
  }

  int num_calls = 0;
};

TEST(BenchMeasure, PassesOverTheBuffersAreTimedAndTheResultIsRightAfterThem) {
  Order order = order_of(Collective::kAllReduce, 4 << 20);
  order.is_pass = true;
  std::vector<int> num_calls(2);
  const auto errors = collectives::test::run_group(Backend::kSim, 2, [&](Group& group) {
    Counted contender(group);
    Memory memory;
    const Answer answer = measure(contender, order, memory);
    EXPECT_EQ(answer.times_us.size(), 3);
    for (const double time : answer.times_us) EXPECT_GT(time, 10);  // 4 MiB at 400 GB/s
    EXPECT_EQ(answer.wrong, 0);
    num_calls[static_cast<std::size_t>(group.group_rank())] = contender.num_calls;
  });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
  EXPECT_EQ(num_calls, std::vector<int>(2, 3));  // a warm-up and two that are checked
}

TEST(BenchMeasure, AnUnknownOperationIsSaid) {
  const auto answers = answers_of(2, order_of(Collective::kGather, 400),
                                  [](Group& group) { return GroupContender(group); });
  EXPECT_EQ(answers[0].unavailable, "no gather of f32 here");
  EXPECT_TRUE(answers[0].times_us.empty());
}

}  // namespace
}  // namespace trireme::bench
