#include "trireme/base/remote_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/base/error_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;

RemoteEnvironment read_remote(const std::map<std::string, std::string>& variables) {
  return read_remote_environment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string complaint_of(const std::map<std::string, std::string>& variables) {
  const Error error = test::error_of([&] { read_remote(variables); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  return error.message();
}

TEST(RemoteEnvironment, TheCacheIsTheUsersOrWhereItIsSaid) {
  EXPECT_EQ(read_remote({{"HOME", "/home/u"}}).cache_folder, "/home/u/.cache/trireme");
  EXPECT_EQ(read_remote({{"HOME", "/home/u"}, {"XDG_CACHE_HOME", "/c"}}).cache_folder,
            "/c/trireme");
  EXPECT_EQ(read_remote({{"HOME", "/home/u"}, {"XDG_CACHE_HOME", "c"}}).cache_folder,
            "/home/u/.cache/trireme");
  EXPECT_EQ(read_remote({{"TRIREME_CACHE_DIR", "/d"}, {"XDG_CACHE_HOME", "/c"}}).cache_folder,
            "/d");
  EXPECT_TRUE(read_remote({{"TRIREME_CACHE_DIR", "d"}}).cache_folder.is_absolute());
  EXPECT_THAT(complaint_of({}), HasSubstr("TRIREME_CACHE_DIR"));
}

TEST(RemoteEnvironment, SizesHaveUnits) {
  const auto size = [](const std::string& text) {
    return read_remote({{"HOME", "/h"}, {"TRIREME_CACHE_SIZE", text}}).cache_bytes;
  };
  EXPECT_EQ(read_remote({{"HOME", "/h"}}).cache_bytes, std::int64_t{64} << 30);
  EXPECT_EQ(size("5000000000"), 5'000'000'000);
  EXPECT_EQ(size("3KiB"), 3 << 10);
  EXPECT_EQ(size("200GiB"), std::int64_t{200} << 30);
  EXPECT_EQ(size("4TiB"), std::int64_t{4} << 40);
  for (const char* text :
       {"0", "-1", "GiB", "1GB", "1 GiB", "1.5GiB", "99999999999TiB", "99999999999999999999"}) {
    EXPECT_THAT(complaint_of({{"HOME", "/h"}, {"TRIREME_CACHE_SIZE", text}}),
                HasSubstr("TRIREME_CACHE_SIZE"))
        << text;
  }
}

TEST(RemoteEnvironment, KeysComeInPairs) {
  const RemoteEnvironment found = read_remote({{"HOME", "/h"},
                                               {"AWS_ACCESS_KEY_ID", "a"},
                                               {"AWS_SECRET_ACCESS_KEY", "b"},
                                               {"AWS_SESSION_TOKEN", "c"},
                                               {"AWS_DEFAULT_REGION", "eu-west-3"},
                                               {"AWS_ENDPOINT_URL", "http://h"},
                                               {"GS_ACCESS_KEY_ID", "d"},
                                               {"GS_SECRET_ACCESS_KEY", "e"},
                                               {"STORAGE_EMULATOR_HOST", "g"},
                                               {"AWS_CA_BUNDLE", "/ca"}});
  EXPECT_EQ(found.s3.id + found.s3.secret + found.s3.session_token + found.gs.id + found.gs.secret,
            "abcde");
  EXPECT_EQ(found.s3_region + found.s3_endpoint + found.gs_endpoint, "eu-west-3http://hg");
  EXPECT_EQ(found.authorities, "/ca");
  EXPECT_EQ(read_remote({{"HOME", "/h"}}).s3_region, "us-east-1");
  EXPECT_EQ(
      read_remote({{"HOME", "/h"}, {"AWS_REGION", "r"}, {"AWS_DEFAULT_REGION", "s"}}).s3_region,
      "r");
  EXPECT_EQ(read_remote({{"HOME", "/h"}, {"AWS_ENDPOINT_URL_S3", "r"}, {"AWS_ENDPOINT_URL", "s"}})
                .s3_endpoint,
            "r");
  EXPECT_THAT(complaint_of({{"HOME", "/h"}, {"AWS_ACCESS_KEY_ID", "a"}}),
              HasSubstr("AWS_SECRET_ACCESS_KEY: is missing"));
  EXPECT_THAT(
      complaint_of({{"HOME", "/h"}, {"GS_SECRET_ACCESS_KEY", "hush"}}),
      testing::AllOf(HasSubstr("GS_ACCESS_KEY_ID: is missing"), testing::Not(HasSubstr("hush"))));
}

}  // namespace
}  // namespace trireme
