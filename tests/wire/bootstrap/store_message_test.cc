// What the store and its clients say reads back, and the rest is refused.

#include "trireme/wire/bootstrap/store_message.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/wire/system/threads.h"
#include "trireme/wire/system/byte_form.h"

namespace trireme::transport::test {
namespace {

void expect_corrupt(const std::function<void()>& call) {
  EXPECT_EQ(error_of_call(call).kind(), ErrorKind::kCorruptData);
}

TEST(StoreMessage, RoundTripInPieces) {
  const StoreMessage message{StoreVerb::kAdd, 7, -9, "key", "value"};
  const std::vector<std::byte> bytes = to_bytes(message);
  std::vector<std::byte> received;
  for (const std::byte byte : bytes) {
    EXPECT_FALSE(take_store_message(received).has_value());
    received.push_back(byte);
  }
  received.push_back(std::byte{1});  // of the next one
  const auto back = take_store_message(received);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(to_bytes(*back), bytes);
  EXPECT_EQ(received.size(), 1U);
}

TEST(StoreMessage, RefusesBadLengths) {
  for (const std::uint32_t length : {0U, 24U, 20U << 20, ~0U}) {
    const auto written = FixedWriter<sizeof length>().integer(length).written();
    std::vector<std::byte> bytes(written.begin(), written.end());
    expect_corrupt([&] { take_store_message(bytes); });
  }
  StoreMessage message{.key = std::string(kMaxStoreKey + 1, 'k')};
  std::vector<std::byte> bytes = to_bytes(message);
  expect_corrupt([&] { take_store_message(bytes); });
}

}  // namespace
}  // namespace trireme::transport::test
