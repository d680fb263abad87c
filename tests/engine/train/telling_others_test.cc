#include "trireme/engine/train/telling_others.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "trireme/wire/endpoint/sim/world.h"

namespace trireme::train {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(TellingOthers, ARankThatFailsTellsTheOthers) {
  const auto endpoints = transport::make_sim_world(2);
  const collectives::World first{*endpoints[0],
                                 {.deadline = 60s, .logger = Logger(LogLevel::kOff)}};
  const collectives::World second{*endpoints[1], first.watch};
  std::thread failing([&] {
    EXPECT_THROW(telling_others(second, 7, [] { throw Error(ErrorKind::kIo, "no disk"); }), Error);
  });
  try {
    telling_others(first, 7, [&] { collectives::gather(first, "", "checkpoint"); });
    ADD_FAILURE() << "rank 1 has failed";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "no disk");
    EXPECT_EQ(error.context().rank, 1);
    EXPECT_EQ(error.context().step, 7);
  }
  failing.join();
}

}  // namespace
}  // namespace trireme::train
