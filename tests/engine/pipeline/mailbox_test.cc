#include "trireme/engine/pipeline/mailbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <thread>

#include "trireme/engine/pipeline/message.h"
#include "trireme/plan/schedule/message_limits.h"
#include "trireme/wire/endpoint/sim/world.h"
#include "trireme/wire/endpoint/work.h"

namespace trireme::pipeline {
namespace {

bool all_messages(int /*microbatch*/) { return true; }

using namespace std::chrono_literals;

constexpr int kMessages = 5;
constexpr transport::Tag kChannelTag = transport::Tag{1} << 60;  // of channel 0, as mailbox.cc

/// Rank 0 sends so many values to rank 1 in a step.
schedule::StepProgram program_of_one_channel() {
  schedule::StepProgram program;
  program.num_microbatches = kMessages;
  program.channels = {{schedule::ChannelKind::kValue, 0, 1, 0, 1}};
  program.ranks.resize(2);
  for (int m = 0; m < kMessages; ++m) {
    for (const auto kind : {schedule::OperationKind::kSend, schedule::OperationKind::kRecv}) {
      schedule::Operation operation;
      operation.kind = kind;
      operation.channel = 0;
      operation.item = 7;
      operation.microbatch = m;
      program.ranks[kind == schedule::OperationKind::kRecv].push_back(operation);
    }
  }
  return program;
}

/// Both ends in one thread: works are done by the world's.
struct Ends {
  explicit Ends(std::chrono::milliseconds deadline = 20s)
      : from(program, 0, *endpoints[0], {.deadline = deadline, .logger = Logger(LogLevel::kOff)}),
        to(program, 1, *endpoints[1], {.deadline = deadline, .logger = Logger(LogLevel::kOff)}) {
    from.begin_step(all_messages);
    to.begin_step(all_messages);
  }

  schedule::StepProgram program = program_of_one_channel();
  std::vector<std::unique_ptr<transport::Endpoint>> endpoints = transport::make_sim_world(2);
  Mailbox from;
  Mailbox to;
};

at::Tensor message(float number) { return pack(torch::full({3}, number)); }

TEST(Mailbox, HandsMessagesOnInOrderStepAfterStep) {
  Ends ends;
  for (int step = 0; step < 3; ++step) {
    if (step > 0) {
      ends.from.begin_step(all_messages);
      ends.to.begin_step(all_messages);
    }
    for (int m = 0; m < kMessages; ++m) ends.from.send(0, message(static_cast<float>(m)));
    for (int m = 0; m < kMessages; ++m) {
      const at::Tensor taken =
          unpack(ends.to.take(0, {.rank = 1, .operation = "recv", .step = step, .microbatch = m}));
      EXPECT_EQ(taken.sum().item<float>(), static_cast<float>(3 * m));
    }
    ends.from.flush({.rank = 0, .operation = "flush", .step = step});
  }
}

// Whoever sends more holds the memory of what nobody has asked for.
TEST(Mailbox, ReceivesAtMostSoManyAhead) {
  Ends ends;
  std::vector<transport::WorkPtr> works;
  const at::Tensor sent = message(1);
  const std::span bytes(static_cast<const std::byte*>(sent.const_data_ptr()), sent.nbytes());
  for (int m = 0; m < kMessages; ++m) {
    works.push_back(ends.endpoints[0]->send(1, kChannelTag, bytes));
  }
  for (int taken = 0;; ++taken) {
    const int received = std::min(taken + schedule::kReceivedAhead, kMessages);
    for (int m = 0; m < received; ++m) EXPECT_TRUE(works[m]->wait_for(20s));
    if (received < kMessages) {
      EXPECT_FALSE(works[received]->wait_for(10ms));
    }
    if (taken == kMessages) break;
    ends.to.take(0, {.rank = 1, .operation = "recv", .step = 0, .microbatch = taken});
  }
}

TEST(Mailbox, SaysWhatItWaitedForInVain) {
  Ends ends(50ms);
  try {
    ends.to.take(0, {.rank = 1, .operation = "recv v7 m2 0>1", .step = 12, .microbatch = 34});
    ADD_FAILURE() << "a message that nobody sent";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
    const std::string text = error.what();
    for (const char* part :
         {"rank 1", "'recv v7 m2 0>1'", "step 12", "microbatch 34", "for rank 0", "peer 0"}) {
      EXPECT_THAT(text, testing::HasSubstr(part));
    }
  }
}

TEST(Mailbox, SaysWhichMessageNobodyTook) {
  Ends ends(50ms);
  for (int m = 0; m < kMessages; ++m) ends.from.send(0, message(0));
  try {
    ends.from.flush({.rank = 0, .operation = "end of the step", .step = 3});
    ADD_FAILURE() << "nobody has taken the messages";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
    EXPECT_THAT(error.what(), testing::HasSubstr("rank 0 has waited"));
    EXPECT_THAT(error.what(), testing::HasSubstr("'end of the step' of step 3 for rank 1"));
  }
}

// A rank whose peer had failed said that torch cannot tell the size of an element, and not what failed.
TEST(Mailbox, HoldsNothingOfAMessageThatFailed) {
  Ends ends;
  ends.endpoints[1]->abort("the bolt has come loose");
  try {
    ends.to.take(0, {.rank = 1, .operation = "recv v7 m0 0>1", .step = 0});
    ADD_FAILURE() << "a message that nobody sent";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the bolt has come loose"));
  }
  EXPECT_EQ(ends.to.held_bytes(), 0);
}

TEST(Mailbox, MemoryOfAnotherSizeIsRefused) {
  Ends ends;
  const std::vector<std::byte> sent(12);
  std::vector<std::byte> taken(16);
  for (int m = 0; m < kMessages; ++m) ends.from.send(0, message(0));
  for (int m = 0; m < kMessages; ++m)
    ends.to.take(0, {.rank = 1, .operation = "recv", .step = 0, .microbatch = m});
  ends.from.send_from(0, sent);
  try {
    ends.to.take_into(0, taken, {.rank = 1, .operation = "recv site 4", .step = 0});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("12 bytes, expected 16"));
  }
}

}  // namespace
}  // namespace trireme::pipeline
