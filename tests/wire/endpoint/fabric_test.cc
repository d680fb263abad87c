// The end of a fabric whose messages are under way: the memory is free, and the process lives.

#include "trireme/wire/endpoint/ofi/fabric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/wire/endpoint/ofi_permit.h"

namespace trireme::transport::test {
namespace {

using internal::Fabric;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t kLarge = std::size_t{1} << 20;  // announced first, then fetched
constexpr int kMessages = 64;                         // more than rxm looks at in one go

class FabricTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto& reason = why_no_ofi_test()) GTEST_SKIP() << reason->message();
    sender = std::make_unique<Fabric>(kOfiProvider, "127.0.0.1", 2);
    receiver = std::make_unique<Fabric>(kOfiProvider, "127.0.0.1", 2);
    const std::array<std::string, 2> addresses = {sender->address(), receiver->address()};
    for (Fabric* fabric : {sender.get(), receiver.get()}) fabric->add_ranks(addresses);
    connect();
  }

  /// By a small message.
  void connect() {
    std::array<std::byte, 8> sent{};
    std::array<std::byte, 8> received{};
    ASSERT_TRUE(receiver->post_recv(1, received, nullptr));
    int num_ended = 0;
    bool is_posted = false;
    const auto deadline = Clock::now() + 10s;
    while (num_ended < 2 && Clock::now() < deadline) {
      if (!is_posted) is_posted = sender->post_send(1, 1, sent, nullptr);
      for (Fabric* fabric : {sender.get(), receiver.get()}) {
        fabric->progress([&](const Fabric::Completion& completion) {
          EXPECT_EQ(completion.problem, "");
          ++num_ended;
        });
      }
    }
    ASSERT_EQ(num_ended, 2);
  }

  /// All are announced, and waited for, before the receiver looks.
  void post_large() {
    for (std::uint64_t tag = 0; tag < kMessages; ++tag) {
      ASSERT_TRUE(receiver->post_recv(100 + tag, into[tag], nullptr));
      ASSERT_TRUE(sender->post_send(1, 100 + tag, message, nullptr));
    }
    std::this_thread::sleep_for(20ms);  // all have come as far as the receiver's socket
  }

  std::unique_ptr<Fabric> sender;
  std::unique_ptr<Fabric> receiver;
  std::vector<std::byte> message = std::vector<std::byte>(kLarge, std::byte{1});
  std::vector<std::vector<std::byte>> into{kMessages, std::vector<std::byte>(kLarge)};
};

TEST_F(FabricTest, ReceiverClosesWithMessagesHalfAnnounced) {
  post_large();
  receiver->progress([](const Fabric::Completion&) {});
  const auto start = Clock::now();
  receiver.reset();
  EXPECT_LT(Clock::now() - start, 1s);
  // What was lent is its owner's again.
  for (auto& memory : into) std::ranges::fill(memory, std::byte{2});
  sender->progress([](const Fabric::Completion&) {});
  sender.reset();
  for (const auto& memory : into) EXPECT_EQ(std::ranges::count(memory, std::byte{2}), kLarge);
}

TEST_F(FabricTest, SenderClosesWithMessagesHalfFetched) {
  post_large();
  receiver->progress([](const Fabric::Completion&) {});
  sender->progress([](const Fabric::Completion&) {});
  sender.reset();
  int num_ended = 0;
  const auto deadline = Clock::now() + 200ms;
  while (Clock::now() < deadline) {
    receiver->progress([&](const Fabric::Completion& completion) {
      if (completion.problem.empty()) ++num_ended;
    });
  }
  EXPECT_LT(num_ended, kMessages);
  receiver.reset();
}

// What nobody sends does not keep it for long.
TEST_F(FabricTest, TakesBackWhatNobodySends) {
  for (std::uint64_t tag = 0; tag < kMessages; ++tag) {
    ASSERT_TRUE(receiver->post_recv(100 + tag, into[tag], nullptr));
  }
  const auto start = Clock::now();
  EXPECT_TRUE(receiver->settle());
  receiver.reset();
  EXPECT_LT(Clock::now() - start, 1s);
}

}  // namespace
}  // namespace trireme::transport::test
