// Letters that make no sense: of a rank that speaks the protocol wrongly.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/wire/endpoint/fake_peer.h"
#include "trireme/wire/endpoint/matcher.h"
#include "trireme/wire/endpoint/tcp/frame.h"

namespace trireme::transport::test {
namespace {

using internal::frame_of;
using internal::Letter;
using internal::letter_of;

constexpr Tag kDomain = Tag{1} << 63 | 8;

TEST(LetterFrame, RoundTrip) {
  const std::vector<std::byte> payload = random_bytes(1, 5);
  const Letter letter{.kind = Letter::Kind::kAllowance,
                      .domain = kDomain,
                      .label = {.tag = ~0ULL, .type = type_name("bf16")},
                      .bytes = 5,
                      .number = 7,
                      .payload = payload};
  const Letter back = letter_of(frame_of(letter), payload);
  EXPECT_EQ(back.kind, letter.kind);
  EXPECT_EQ(back.domain, letter.domain);
  EXPECT_EQ(back.label, letter.label);
  EXPECT_EQ(back.bytes, letter.bytes);
  EXPECT_EQ(back.number, letter.number);
  EXPECT_EQ(back.payload.size(), 5U);
}

class FakeWriter : public FakePeer {
 protected:
  void write(const Letter& letter, std::span<const std::byte> payload = {}) {
    internal::Frame frame = frame_of(letter);
    frame.sequence = sequence_++;
    send(frame, payload);
  }

 private:
  std::uint64_t sequence_ = 0;
};

TEST_F(FakeWriter, GrantsWhatWasNotAnnounced) {
  write({.kind = Letter::Kind::kGrant, .domain = kDomain, .number = 3});
  expect_corrupt("a grant of what was not announced");
}

TEST_F(FakeWriter, AllowsMoreThanWasWritten) {
  write({.kind = Letter::Kind::kAllowance, .domain = kDomain, .number = 1});
  expect_corrupt("an allowance for more letters than were written");
}

TEST_F(FakeWriter, SaysAnotherSize) {
  const std::vector<std::byte> payload(4);
  write({.domain = kDomain, .bytes = 5}, payload);
  expect_corrupt("not of the size that it says");
}

TEST_F(FakeWriter, AnnouncesWhatIsSmall) {
  write({.kind = Letter::Kind::kAnnouncement, .domain = kDomain, .bytes = 5});
  expect_corrupt("not of the size that it says");
}

TEST_F(FakeWriter, FloodsTheReceiver) {
  for (std::size_t i = 0; i <= Messages::kMaxWaiting; ++i) write({.domain = kDomain});
  expect_corrupt("more messages than are allowed to wait");
}

TEST_F(FakeWriter, WritesToNoDomain) {
  write({.domain = kDomain + 1});
  expect_corrupt("for no domain");
}

TEST_F(FakeWriter, WritesALetterOfNoKind) {
  write({.kind = static_cast<Letter::Kind>(9), .domain = kDomain});
  expect_corrupt("a letter of no kind");
}

}  // namespace
}  // namespace trireme::transport::test
