#include "trireme/base/sha256.h"

#include <gtest/gtest.h>

#include <vector>

namespace trireme {
namespace {

constexpr const char* kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256, AgreesWithThePublishedExamples) {
  // FIPS 180-2, appendix B.1, and the empty message.
  EXPECT_EQ(sha256(std::string_view("")), kEmpty);
  EXPECT_EQ(sha256(std::string_view("abc")), kAbc);
}

TEST(Sha256, PiecesGiveTheDigestOfTheWhole) {
  const std::string text(1000, 'x');
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  for (std::size_t piece : {1, 7, 64, 1000}) {
    Sha256 hash;
    for (std::size_t i = 0; i < bytes.size(); i += piece) {
      hash.add(bytes.subspan(i, std::min(piece, bytes.size() - i)));
    }
    EXPECT_EQ(hash.finish(), sha256(text)) << piece;
  }
}

// RFC 4231, test cases 2 and 6.
TEST(Sha256, HmacAgreesWithThePublishedExamples) {
  const auto hmac = [](std::string_view key, std::string_view text) {
    return hmac_sha256(std::as_bytes(std::span(key)), std::as_bytes(std::span(text)));
  };
  const Sha256Digest short_key = hmac("Jefe", "what do ya want for nothing?");
  EXPECT_EQ(short_key[0], std::byte{0x5b});
  EXPECT_EQ(short_key[1], std::byte{0xdc});
  EXPECT_EQ(short_key[31], std::byte{0x43});
  const Sha256Digest long_key =
      hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First");
  EXPECT_EQ(long_key[0], std::byte{0x60});
  EXPECT_EQ(long_key[31], std::byte{0x54});
  EXPECT_TRUE(is_same_digest(short_key, short_key));
  Sha256Digest other = short_key;
  other[31] ^= std::byte{1};
  EXPECT_FALSE(is_same_digest(short_key, other));
}

TEST(Sha256, KnowsTheFormOfADigest) {
  EXPECT_TRUE(is_sha256(kAbc));
  EXPECT_FALSE(is_sha256(""));
  EXPECT_FALSE(is_sha256(std::string(64, 'G')));
  EXPECT_FALSE(is_sha256(std::string(63, 'a')));
  EXPECT_FALSE(is_sha256(std::string(64, 'A')));
}

}  // namespace
}  // namespace trireme
