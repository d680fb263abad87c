#include "trireme/remote/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/error_of.h"

namespace trireme::remote {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string result(const std::string& inside) {
  return "<?xml version=\"1.0\"?><ListBucketResult "
         "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" +
         inside + "</ListBucketResult>";
}

std::string complaint(const std::string& xml) {
  const Error error = test::error_of([&] { parse_listing(xml, "s3://b/x/"); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), HasSubstr("s3://b/x/"));
  return error.message();
}

TEST(Listing, KeysAreDecodedAsTheyAreEncoded) {
  const std::string keys =
      "<Contents><Key>a%2Fb+c%C3%BC%2B</Key></Contents><Contents><Key>folder/</Key></Contents>"
      "<Contents><Size>1</Size><Key>d&amp;&lt;</Key></Contents>";
  EXPECT_THAT(parse_listing(result("<EncodingType>url</EncodingType>" + keys), "x").keys,
              ElementsAre("a/b c\xC3\xBC+", "d&<"));
  EXPECT_THAT(parse_listing(result(keys), "x").keys, ElementsAre("a%2Fb+c%C3%BC%2B", "d&<"));
  EXPECT_THAT(parse_listing(result(""), "x").keys, ElementsAre());
}

TEST(Listing, APageSaysWhereItGoesOn) {
  const std::string token = "<NextContinuationToken>1/a==</NextContinuationToken>";
  EXPECT_EQ(parse_listing(result("<IsTruncated>true</IsTruncated>" + token), "x").next, "1/a==");
  EXPECT_EQ(parse_listing(result("<IsTruncated>false</IsTruncated>" + token), "x").next, "");
  EXPECT_THAT(complaint(result("<IsTruncated>true</IsTruncated>")),
              HasSubstr("does not say where"));
}

TEST(Listing, WhatIsNoneIsRefused) {
  const std::string whole = result("<Contents><Key>a</Key></Contents>");
  EXPECT_THAT(complaint(whole.substr(0, whole.size() - 20)), HasSubstr("is damaged at byte"));
  EXPECT_THAT(complaint(""), HasSubstr("is damaged at byte"));
  EXPECT_THAT(complaint("<html></html>"), HasSubstr("it begins with <html>"));
  EXPECT_THAT(complaint(result("<Contents></Contents>")), HasSubstr("a key that can be none"));
  for (const char* key : {"%", "%2", "%zz", "%-1", "% 1"}) {
    EXPECT_THAT(complaint(result("<EncodingType>url</EncodingType><Contents><Key>" +
                                 std::string(key) + "</Key></Contents>")),
                HasSubstr("badly encoded"))
        << key;
  }
  EXPECT_THAT(
      complaint(result("<EncodingType>url</EncodingType><Contents><Key>a%00</Key></Contents>")),
      HasSubstr("can be none"));
}

TEST(Listing, OfAnErrorTheCodeAloneIsTaken) {
  EXPECT_EQ(error_code("<Error><Code>NoSuchKey</Code><Message>hush</Message></Error>"),
            "NoSuchKey");
  EXPECT_EQ(error_code("<Error><Code>No\nSuch</Code></Error>"), "");
  EXPECT_EQ(error_code("<html><Code>x</Code></html>"), "");
  EXPECT_EQ(error_code("busy"), "");
}

}  // namespace
}  // namespace trireme::remote
