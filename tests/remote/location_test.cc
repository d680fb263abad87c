#include "trireme/remote/location.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/error_of.h"

namespace trireme::remote {
namespace {

TEST(Location, NamesAreToldFromPaths) {
  for (const char* name : {"s3://b/k", "gs://b/k", "http://h/p", "https://h/p"})
    EXPECT_TRUE(is_remote(name)) << name;
  for (const char* path : {"/s3://b", "s3:/b", "x.tar", "", "ftp://h/p", "./http://h"})
    EXPECT_FALSE(is_remote(path)) << path;
}

TEST(Location, WhatIsShownHasNoSecrets) {
  EXPECT_EQ(shown("https://me:hush@host:1/a@b/x.tar?sig=hush#hush"), "https://host:1/a@b/x.tar");
  EXPECT_EQ(shown("https://host/x.tar"), "https://host/x.tar");
  EXPECT_EQ(shown("https://host?sig=hush"), "https://host");
  EXPECT_EQ(shown("s3://b/what?.tar"), "s3://b/what?.tar") << "a key may have any letters";
  EXPECT_EQ(shown("data/x?.tar"), "data/x?.tar");
}

TEST(Location, BucketsAreHostsOfAmazonAndPathsElsewhere) {
  const StoreKeys keys{.id = "a", .secret = "b"};
  RemoteEnvironment environment{.s3 = keys, .s3_region = "eu-west-3"};
  EXPECT_EQ(location_of("s3://b/k/x y+%.tar", environment).url,
            "https://b.s3.eu-west-3.amazonaws.com/k/x%20y%2B%25.tar");
  EXPECT_EQ(location_of("s3://b.c/k", environment).url, "https://s3.eu-west-3.amazonaws.com/b.c/k");
  EXPECT_EQ(location_of("s3://b/k", environment).signer->region, "eu-west-3");
  EXPECT_EQ(location_of("gs://b/k", environment).url, "https://storage.googleapis.com/b/k");
  EXPECT_FALSE(location_of("gs://b/k", environment).signer) << "other keys";
  EXPECT_FALSE(location_of("https://h/k", environment).signer);
  EXPECT_EQ(location_of("https://h/k%20?a=b#c", environment).url, "https://h/k%20?a=b");
  environment = {.s3_region = "cn-north-1"};
  EXPECT_EQ(location_of("s3://b/k", environment).url, "https://b.s3.cn-north-1.amazonaws.com.cn/k");
  environment.s3_endpoint = "https://store:9000/";
  environment.gs_endpoint = "localhost:9023";
  EXPECT_EQ(location_of("s3://b/k", environment).url, "https://store:9000/b/k");
  EXPECT_EQ(location_of("gs://b/k", environment).url, "http://localhost:9023/b/k");
}

TEST(Location, WhatIsNoNameIsRefused) {
  for (const char* name : {"s3://", "s3:///key", "s3://b?/k", "gs://b@host/k", "http://",
                           "https:///x", "http://a:b@/x"}) {
    EXPECT_EQ(test::error_of([&] { location_of(name, {}); }).kind(), ErrorKind::kInvalidArgument)
        << name;
  }
}

}  // namespace
}  // namespace trireme::remote
