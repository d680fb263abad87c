#include "trireme/remote/digests.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/error_of.h"
#include "tests/base/test_folder.h"

namespace trireme::remote {
namespace {

using Algorithm = Digest::Algorithm;

class DigestsTest : public test::TestFolder {};

// `printf 123456789 | openssl dgst -md5 -binary | base64`, and so on; the CRCs are the check values of their catalogues.
TEST_F(DigestsTest, AreThoseOfOtherPrograms) {
  const Descriptor file(::open(write("x", "123456789 and more").c_str(), O_RDONLY));
  EXPECT_EQ(digest_of(file, 9, Algorithm::kCrc32c), "4waSgw==");  // E3069283
  EXPECT_EQ(digest_of(file, 9, Algorithm::kCrc32), "y/Q5Jg==");   // CBF43926
  EXPECT_EQ(digest_of(file, 9, Algorithm::kMd5), "JfnnlDI7RTiF9RgfG2JNCw==");
  EXPECT_EQ(digest_of(file, 9, Algorithm::kSha1), "98O8HYCOBHMq32eZZczDTKeuNEE=");
  EXPECT_EQ(digest_of(file, 9, Algorithm::kSha256), "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=");
  EXPECT_EQ(digest_of(file, 0, Algorithm::kMd5), "1B2M2Y8AsgTpgAmY7PhCfg==");
  EXPECT_EQ(test::error_of([&] { digest_of(file, 100, Algorithm::kMd5); }).kind(), ErrorKind::kIo);
}

TEST(Digests, TheCheapestIsTaken) {
  const Headers all = {
      {"x-amz-checksum-sha256", "S"}, {"x-amz-checksum-crc32c", "C"}, {"etag", "\"00\""}};
  EXPECT_EQ(announced_digest(all, true)->base64, "C");
  EXPECT_EQ(announced_digest(all, true)->algorithm, Algorithm::kCrc32c);
  const auto google = announced_digest({{"x-goog-hash", "md5=M==, crc32c=n03x6A=="}}, true);
  EXPECT_EQ(google->base64, "n03x6A==");
  EXPECT_EQ(announced_digest({{"x-goog-hash", "md5=M=="}}, true)->algorithm, Algorithm::kMd5);
  EXPECT_EQ(announced_digest({{"content-md5", "M=="}}, false)->base64, "M==");
}

TEST(Digests, AnETagIsAnMd5WhereThatIsKnown) {
  const Headers whole = {{"etag", "\"25f9e794323b453885f5181f1b624d0b\""}};
  EXPECT_EQ(announced_digest(whole, true)->base64, "JfnnlDI7RTiF9RgfG2JNCw==");
  EXPECT_FALSE(announced_digest(whole, false)) << "a web server's may be anything";
  Headers encrypted = whole;
  encrypted["x-amz-server-side-encryption"] = "aws:kms";
  EXPECT_FALSE(announced_digest(encrypted, true));
  for (const char* tag :
       {"\"25f9e794323b453885f5181f1b624d0b-3\"", "\"x5f9e794323b453885f5181f1b624d0b\"", "",
        "\"\"", "W/\"25f9e794323b453885f5181f1b624d0b\""}) {
    EXPECT_FALSE(announced_digest({{"etag", tag}}, true)) << tag;
  }
  EXPECT_FALSE(announced_digest({{"x-amz-checksum-sha256", "S-3"}}, true)) << "of parts";
  EXPECT_FALSE(announced_digest(
      {{"x-amz-checksum-crc32", "S"}, {"x-amz-checksum-type", "COMPOSITE"}}, true));
}

}  // namespace
}  // namespace trireme::remote
