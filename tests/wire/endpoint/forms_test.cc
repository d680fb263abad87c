// What connections between ranks carry: each reads back what it wrote, and refuses the rest.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/endpoint/tcp/frame.h"
#include "trireme/wire/endpoint/tcp/hello.h"
#include "trireme/wire/system/byte_form.h"

namespace trireme::transport::test {
namespace {

using internal::Frame;
using internal::FrameHeader;
using internal::FrameKind;

void expect_corrupt(const std::function<void()>& call) {
  EXPECT_EQ(error_of_call(call).kind(), ErrorKind::kCorruptData);
}

TEST(ErrorForm, LongTextsAreCut) {
  Error error(ErrorKind::kIo, std::string(100'000, 'x'));
  error.add({.group = std::string(5000, 'g')});
  const std::vector<std::byte> bytes = error_to_bytes(error);
  EXPECT_LE(bytes.size(), internal::kMaxPoison);
  EXPECT_EQ(error_from_bytes(bytes).message(), std::string(60'000, 'x'));
}

TEST(Frame, RoundTrip) {
  const Frame frames[] = {
      {.kind = FrameKind::kCredit, .tag = ~0ULL, .sequence = 3},
      {.kind = FrameKind::kData, .tag = 1, .payload_bytes = 5, .message_bytes = 9, .offset = 4},
      {.kind = FrameKind::kData, .tag = 1},
      {.kind = FrameKind::kOffer, .tag = 1, .message_bytes = internal::kMaxMessage},
      {.kind = FrameKind::kOffer, .tag = 1, .message_bytes = 1, .offset = ~0ULL},
      {.kind = FrameKind::kReader, .tag = 5, .offset = ~0ULL},
      {.kind = FrameKind::kTaken},
      {.kind = FrameKind::kAccept, .offset = ~0ULL},
      {.kind = FrameKind::kPoison, .payload_bytes = internal::kMaxPoison},
      {.kind = FrameKind::kFailed, .tag = 8, .payload_bytes = internal::kMaxPoison},
      {.kind = FrameKind::kAlive},
      {.kind = FrameKind::kLetter, .tag = 8, .payload_bytes = 3, .message_bytes = 3, .offset = 9},
      {.kind = FrameKind::kGoodbye}};
  for (const Frame& frame : frames) EXPECT_EQ(internal::parse_frame(to_bytes(frame)), frame);
}

TEST(Frame, RefusesWhatContradictsItself) {
  const Frame frames[] = {
      {.kind = FrameKind::kCredit, .payload_bytes = 1},
      {.kind = FrameKind::kGoodbye, .message_bytes = 1},
      {.kind = FrameKind::kPoison, .payload_bytes = internal::kMaxPoison + 1},
      {.kind = FrameKind::kData, .payload_bytes = 6, .message_bytes = 9, .offset = 4},
      {.kind = FrameKind::kData, .payload_bytes = 1, .message_bytes = 9, .offset = ~0ULL},
      {.kind = FrameKind::kData, .payload_bytes = 0, .message_bytes = 9},
      {.kind = FrameKind::kData,
       .payload_bytes = internal::kMaxSegment + 1,
       .message_bytes = internal::kMaxSegment + 1},
      {.kind = FrameKind::kOffer, .tag = 1},
      {.kind = FrameKind::kOffer, .payload_bytes = 1, .message_bytes = 1},
      {.kind = FrameKind::kOffer, .message_bytes = internal::kMaxMessage + 1},
      {.kind = FrameKind::kAccept, .message_bytes = 1},
      {.kind = FrameKind::kCredit, .offset = 1},
      {.kind = FrameKind::kReader, .tag = 5},
      {.kind = FrameKind::kReader, .offset = 5},
      {.kind = FrameKind::kTaken, .offset = 1},
      {.kind = FrameKind::kFailed, .payload_bytes = internal::kMaxPoison + 1},
      {.kind = FrameKind::kAlive, .payload_bytes = 1},
      {.kind = static_cast<FrameKind>(0)},
      {.kind = FrameKind::kLetter, .payload_bytes = internal::kMaxLetter + 1},
      {.kind = FrameKind::kLetter, .message_bytes = internal::kMaxMessage + 1},
      {.kind = static_cast<FrameKind>(13)}};
  for (const Frame& frame : frames) expect_corrupt([&] { internal::parse_frame(to_bytes(frame)); });
}

// No byte of the header is ignored: where another value is read, it is another frame.
TEST(Frame, EveryByteMatters) {
  const Frame frame{.kind = FrameKind::kCredit, .tag = 1, .sequence = 3};
  for (std::size_t i = 0; i < internal::kHeaderBytes; ++i) {
    FrameHeader header = to_bytes(frame);
    header[i] ^= std::byte{0x40};
    try {
      EXPECT_NE(internal::parse_frame(header), frame) << i;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << i;
    }
  }
}

TEST(Hello, RoundTripAndRefusal) {
  const internal::Hello hello{internal::Welcome::kWrongSize, 1ULL << 63, 3, 4};
  EXPECT_EQ(internal::parse_hello(to_bytes(hello)), hello);
  for (const std::size_t i : {0, 4, 6, 7, 24, 31}) {
    internal::HelloBytes bytes = to_bytes(hello);
    bytes[i] ^= std::byte{0x40};
    expect_corrupt([&] { internal::parse_hello(bytes); });
  }
}

}  // namespace
}  // namespace trireme::transport::test
