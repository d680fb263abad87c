#include "trireme/wire/endpoint/watch.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "trireme/wire/endpoint/matcher.h"
#include "trireme/wire/endpoint/sim/world.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;

// The memory of a message went with the frame that waited for it, and the message came later.
TEST(Await, GivenUpEndsItsWork) {
  const auto endpoints = make_sim_world(2);
  const std::vector<std::byte> sent(12);
  const auto send = endpoints[1]->send(0, 5, sent);
  const auto recv = endpoints[1]->recv(0, 6, [](std::size_t) -> std::span<std::byte> {
    ADD_FAILURE() << "a message for a recv that was given up";
    return {};
  });
  const WatchOptions watch{.deadline = 50ms, .logger = Logger(LogLevel::kOff)};
  EXPECT_THROW(await(message_work(*recv, *endpoints[1], 0), watch,
                     {.rank = 1, .operation = "recv", .step = 2, .microbatch = 3}),
               Error);
  EXPECT_TRUE(recv->is_done());
  EXPECT_TRUE(send->is_done());  // the caller's other works too
  const auto failure = endpoints[0]->failure();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kind(), ErrorKind::kTimeout);
  EXPECT_EQ(failure->context().rank, 1);
  EXPECT_EQ(failure->context().peer, 0);
  EXPECT_EQ(failure->context().step, 2);
  EXPECT_EQ(failure->context().microbatch, 3);
  EXPECT_THROW(endpoints[0]->send(1, 6, sent)->wait_for(20s), Error);
}

// What failed before is the cause, not the wait that it made too long.
TEST(Await, GivenUpTellsTheFirstCause) {
  const auto endpoints = make_sim_world(2);
  PendingWork never(endpoints[0]->shared_failure());
  std::thread ends_later([&] {
    std::this_thread::sleep_for(200ms);
    never.complete();
  });
  endpoints[1]->poison(Error(ErrorKind::kIo, "the disk is full"));
  const WatchOptions watch{.deadline = 50ms, .logger = Logger(LogLevel::kOff)};
  try {
    await(message_work(never, *endpoints[0], 1), watch,
          {.rank = 0, .operation = "recv", .step = 2, .microbatch = 3});
    ADD_FAILURE() << "a work that ended too late";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "the disk is full");
    EXPECT_TRUE(never.is_done());
  }
  ends_later.join();
}

// A rank that measures must not let its core idle.
TEST(Await, DoesSomethingMeanwhile) {
  const auto endpoints = make_sim_world(2);
  const std::vector<std::byte> sent(12);
  std::vector<std::byte> memory(12);
  const auto recv = endpoints[1]->recv(0, 5, [&](std::size_t) { return std::span(memory); });
  int num_slices = 0;
  Awaited message = message_work(*recv, *endpoints[1], 0);
  message.meanwhile = [&] {
    if (++num_slices == 3) endpoints[0]->send(1, 5, sent);
  };
  await(message, {.deadline = 20s}, {.operation = "recv"});
  EXPECT_GE(num_slices, 3);
  EXPECT_TRUE(recv->is_done());
}

}  // namespace
}  // namespace trireme::transport::test
