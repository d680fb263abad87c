#include "trireme/remote/remote_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "tests/base/error_of.h"
#include "tests/base/small_disk.h"
#include "tests/base/test_folder.h"
#include "tests/remote/store_server.h"
#include "trireme/remote/cache_contents.h"

namespace trireme::remote {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::error_of;
using test::quick_policy;
using test::StoreServer;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Clock = std::chrono::steady_clock;

/// Bytes that are no other object's.
std::string some_bytes(std::size_t count, unsigned seed) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>((seed = seed * 1664525U + 1013904223U) >> 24);
  return bytes;
}

std::string content_of(const Descriptor& file) {
  std::string text(1 << 22, '\0');
  const ssize_t count = ::pread(file.number(), text.data(), text.size(), 0);
  text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  return text;
}

class RemoteFilesTest : public test::TestFolder {
 protected:
  void SetUp() override {
    if (!server.is_there()) GTEST_SKIP() << "no Python to run the store";
  }

  RemoteFiles open(const std::vector<fs::path>& names) const {
    return RemoteFiles(names, environment, policy);
  }

  /// Of one object `s3://b/x.bin`.
  std::string fetched() const { return content_of(open({"s3://b/x.bin"}).open(0)); }

  Error failure(const fs::path& name = "s3://b/x.bin") const {
    return error_of([&] { open({name}); });
  }

  /// The files of the cache, without what belongs to the folder itself.
  std::vector<fs::path> cached() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(environment.cache_folder)) {
      const std::string name = entry.path().filename().string();
      if (is_cached_name(name)) files.push_back(entry.path());
    }
    return files;
  }

  bool has_lease() const {
    const fs::directory_iterator entries(environment.cache_folder);
    return std::any_of(begin(entries), end(entries),
                       [](const auto& entry) { return entry.path().extension() == ".lease"; });
  }

  const StoreServer server{folder};
  RemoteEnvironment environment = server.environment();
  RetryPolicy policy = quick_policy();
  const std::string million = some_bytes(1'000'000, 1);
};

TEST_F(RemoteFilesTest, AreFetchedOnceAndKept) {
  server.put("b/x.bin", million);
  server.put("b/y.bin", "");
  const std::vector<fs::path> names = {"s3://b/x.bin", server.url() + "/b/x.bin", "gs://b/y.bin"};
  for (int i = 0; i < 2; ++i) {
    const RemoteFiles files(names, environment, policy);
    EXPECT_EQ(content_of(files.open(0)), million);
    EXPECT_EQ(content_of(files.open(1)), million);
    EXPECT_EQ(content_of(files.open(2)), "");
    EXPECT_EQ(server.count("GET"), 1) << "the URL is the same as the store's";
    EXPECT_EQ(server.count("HEAD"), 3 * (i + 1)) << "it might have changed";
  }
  server.put("b/x.bin", "another");
  EXPECT_EQ(fetched(), "another");
}

TEST_F(RemoteFilesTest, ABusyServerIsAskedAgainWhenItSays) {
  server.put("b/x.bin", million);
  server.fail("/b/x.bin head-status 1 500");
  server.fail("/b/x.bin status 1 503:1");
  server.fail("/b/x.bin status 2 429");
  const auto begin = Clock::now();
  EXPECT_EQ(fetched(), million);
  EXPECT_GE(Clock::now() - begin, 1s);
  EXPECT_EQ(server.count("GET"), 4);
  server.put("b/x.bin", "2");
  server.fail("/b/x.bin status 1 503:3600");
  const Error error = failure();
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("'s3://b/x.bin' cannot be fetched"),
                    HasSubstr("HTTP status 503, SlowDown; the server asks to wait 3600 s")));
}

TEST_F(RemoteFilesTest, AConnectionThatIsCutGoesOnWhereItWas) {
  server.put("b/x.bin", million);
  server.fail("/b/x.bin cut 3 300000");
  EXPECT_EQ(fetched(), million);
  EXPECT_THAT(server.log(), ElementsAre("HEAD /b/x.bin - 200 0", "GET /b/x.bin - 200 300000",
                                        "GET /b/x.bin bytes=300000- 206 300000",
                                        "GET /b/x.bin bytes=600000- 206 300000",
                                        "GET /b/x.bin bytes=900000- 206 100000"));
}

TEST_F(RemoteFilesTest, WithoutAStrongETagItBeginsAgain) {
  server.put("b/x.bin", million);
  server.fail("/b/x.bin weak-etag 100");
  server.fail("/b/x.bin cut 2 300000");
  EXPECT_EQ(fetched(), million);
  EXPECT_EQ(server.count("GET /b/x.bin - 200"), 3);
}

TEST_F(RemoteFilesTest, AServerThatGivesNoPartsIsReadFromTheBeginning) {
  server.put("b/x.bin", million);
  server.fail("/b/x.bin ignore-range 100");
  server.fail("/b/x.bin cut 2 300000");
  EXPECT_EQ(fetched(), million);
  EXPECT_EQ(server.count("GET /b/x.bin bytes=300000- 200"), 2);
}

TEST_F(RemoteFilesTest, OneThatChangesMeanwhileIsNoMixture) {
  for (const std::string fault : {"", "ignore-match", "etag"}) {
    server.put("b/x.bin", million);
    if (!fault.empty()) server.fail("/b/x.bin " + fault + " 100 0");
    if (fault != "etag") server.fail("/b/x.bin change 1 300000" + std::string(fault.size(), ' '));
    const Error error = failure();
    EXPECT_EQ(error.kind(), ErrorKind::kIo) << error.what();
    EXPECT_THAT(error.message(),
                AllOf(HasSubstr("s3://b/x.bin"), HasSubstr("has changed while it was fetched")));
    EXPECT_THAT(cached(), ElementsAre());
  }
}

TEST_F(RemoteFilesTest, WhatDoesNotMatchItsChecksumIsFetchedAgain) {
  server.put("b/x.bin", million);
  server.fail("/b/x.bin corrupt 1");
  EXPECT_EQ(fetched(), million) << "the ETag is an MD5";
  EXPECT_EQ(server.count("GET /b/x.bin - 200"), 2);
  server.fail("/b/y.bin sha256 100");
  server.fail("/b/y.bin corrupt 1");
  server.put("b/y.bin", million);
  EXPECT_EQ(content_of(open({server.url() + "/b/y.bin"}).open(0)), million);
  EXPECT_EQ(server.count("GET /b/y.bin - 200"), 2);
  server.put("b/x.bin", "damaged");
  server.fail("/b/x.bin corrupt 1000");
  policy.patience = 300ms;
  const Error error = failure();
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.message(), HasSubstr("does not match the checksum"));
}

TEST_F(RemoteFilesTest, OneThatComesNoFurtherIsGivenUp) {
  server.put("b/x.bin", std::string(1000, 'x'));
  server.fail("/b/x.bin drip 100 0.1");
  policy.patience = 500ms;
  Error error = failure();
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("s3://b/x.bin"), HasSubstr("without progress")));
  server.fail("/b/x.bin hang 100");
  error = failure();
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  environment.s3_endpoint = "http://127.0.0.1:1";  // nobody
  EXPECT_EQ(failure().kind(), ErrorKind::kTimeout);
}

TEST_F(RemoteFilesTest, WhatCannotBeHadIsSaidAtOnceWithoutSecrets) {
  EXPECT_THAT(failure().message(), HasSubstr("'s3://b/x.bin' is not there (HTTP status 404"));
  const std::string host = server.url().substr(7);
  server.put("b/x.bin", "abc");
  server.require_keys("somebody", "secret");
  Error error = failure("http://me:hush@" + host + "/b/x.bin?token=hush");
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("http://" + host + "/b/x.bin"), HasSubstr("403"),
                                     Not(HasSubstr("hush"))));
  EXPECT_THAT(failure().message(), HasSubstr("without keys: AWS_ACCESS_KEY_ID and"));
  environment.s3 = {.id = "somebody", .secret = "hush"};
  error = failure();
  EXPECT_THAT(error.message(), AllOf(HasSubstr("the keys in AWS_ACCESS_KEY_ID and"),
                                     Not(HasSubstr("hush")), Not(HasSubstr("somebody"))));
  EXPECT_EQ(server.count("HEAD /b/x.bin - 403"), 3) << "asked once each";
  server.fail("/b/x.bin region 1 eu-west-3");
  EXPECT_THAT(failure().message(), HasSubstr("set AWS_REGION to eu-west-3"));
}

TEST_F(RemoteFilesTest, RequestsAreSigned) {
  server.require_keys("somebody", "secret/with+signs=");
  environment.s3 = environment.gs = {.id = "somebody", .secret = "secret/with+signs="};
  const std::string name = "b/a b+c%20=&~\xC3\xBC/x?.bin";
  server.put(name, million);
  server.fail("* cut 1 300000");
  EXPECT_EQ(content_of(open({"s3://" + name}).open(0)), million);
  environment.s3.session_token = "lent//for+a+time==";
  server.put(name, "abc");
  EXPECT_EQ(content_of(open({"s3://" + name}).open(0)), "abc");
  EXPECT_EQ(content_of(open({"gs://" + name}).open(0)), "abc");
  EXPECT_THAT(Objects(environment, policy).list("s3://b/a b+c%20=&~\xC3\xBC/"),
              ElementsAre("s3://" + name));
}

TEST_F(RemoteFilesTest, AListingHasAllPages) {
  std::vector<fs::path> names;
  for (const char* key : {"x/+", "x/1", "x/10", "x/2 \xC3\xBC", "x/a&b<c>", "x/e", "x/f"}) {
    server.put(std::string("b/") + key, "");
    names.push_back(std::string("s3://b/") + key);
  }
  server.put("b/x/below/z", "");
  server.put("b/xy", "");
  server.fail("/b/ status 2 503");
  EXPECT_EQ(Objects(environment, policy).list("s3://b/x/"), names);
  EXPECT_EQ(server.count("GET /b/ - 200"), 3);
  EXPECT_THAT(Objects(environment, policy).list("gs://b/nothing/"), ElementsAre());
}

TEST_F(RemoteFilesTest, LinksMayLeadElsewhereAndKnowGetAlone) {
  server.put("b/x.bin", million);
  server.fail("/b/x.bin no-head 100");
  server.fail("/link redirect 100 /b/x.bin");
  EXPECT_EQ(content_of(open({server.url() + "/link?signature=1"}).open(0)), million);
  EXPECT_EQ(content_of(open({server.url() + "/link?signature=2"}).open(0)), million);
  EXPECT_EQ(server.count("GET /b/x.bin - 200"), 1) << "signed anew it is the same";
}

TEST_F(RemoteFilesTest, WhatCannotBeCheckedIsRefused) {
  server.put("b/x.bin", "abc");
  server.fail("/b/x.bin no-length 100");
  server.fail("/b/x.bin ignore-range 100");
  EXPECT_THAT(failure(server.url() + "/b/x.bin").message(),
              HasSubstr("does not say how long it is"));
  server.put("b/y.csv", "abc");
  server.fail("/b/y.csv encoding 100 gzip");
  EXPECT_THAT(failure("s3://b/y.csv").message(),
              HasSubstr("is kept compressed (Content-Encoding gzip)"));
  EXPECT_EQ(failure("s3://").kind(), ErrorKind::kInvalidArgument);
}

TEST_F(RemoteFilesTest, ACertificateHasToBeTrusted) {
  write("tls", "");
  const StoreServer safe(folder);
  if (!safe.is_there()) GTEST_SKIP() << "no program openssl makes a certificate";
  environment.s3_endpoint = safe.url("https");
  server.put("b/x.bin", million);
  EXPECT_THAT(failure().message(), HasSubstr("certificate"));
  environment.authorities = path("certificate.pem");
  EXPECT_EQ(fetched(), million);
}

TEST_F(RemoteFilesTest, ProcessesFetchAFileOnceTogether) {
  std::vector<fs::path> names;
  for (int i = 0; i < 12; ++i) {
    const std::string name = "b/" + std::to_string(i);
    server.put(name, some_bytes(200'000, 10U + static_cast<unsigned>(i)));
    names.push_back("s3://" + name);
  }
  server.fail("* slow 100");
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    int wrong = 1;
    try {
      const RemoteFiles files(names, environment, policy);
      wrong = 0;
      for (int i = 0; i < files.size(); ++i) {
        wrong += content_of(files.open(i)) == some_bytes(200'000, 10U + static_cast<unsigned>(i))
                     ? 0
                     : 1;
      }
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(wrong);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(server.count("GET"), 12);
  EXPECT_EQ(cached().size(), 12U);
  EXPECT_FALSE(has_lease());
}

TEST_F(RemoteFilesTest, WhatAKilledProcessLeftIsFetchedByTheNext) {
  server.put("b/x.bin", million);
  server.fail("/b/x.bin drip 1 0.01");
  const pid_t child = ::fork();
  if (child == 0) {
    fetched();
    ::_exit(0);
  }
  while (!fs::exists(environment.cache_folder) || cached().empty())
    std::this_thread::sleep_for(5ms);
  std::this_thread::sleep_for(50ms);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(cached().size(), 1U) << "a part";
  EXPECT_TRUE(has_lease());
  server.put("b/y.bin", "abc");
  open({"s3://b/y.bin"});
  EXPECT_THAT(cached(),
              ElementsAre(testing::ResultOf([](const fs::path& path) { return path.string(); },
                                            HasSubstr("-y.bin"))))
      << "who looks for room removes it";
  EXPECT_EQ(fetched(), million);
  EXPECT_FALSE(has_lease());
}

TEST_F(RemoteFilesTest, WhatWasUsedLeastLatelyMakesRoom) {
  for (const char* name : {"b/1", "b/2", "b/3", "b/4"}) server.put(name, some_bytes(100'000, 5));
  environment.cache_bytes = 250'000;
  open({"s3://b/1"});
  open({"s3://b/2"});
  open({"s3://b/1"});
  {
    const RemoteFiles third = open({"s3://b/3"});
    open({"s3://b/1"});
    EXPECT_EQ(server.count("GET /b/1"), 1);
    const RemoteFiles second = open({"s3://b/2"});
    EXPECT_EQ(server.count("GET /b/2"), 2);
    const Error error = failure("s3://b/4");
    EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
    EXPECT_THAT(error.message(),
                AllOf(HasSubstr("s3://b/4"), HasSubstr("others are reading 200000")));
  }
  open({"s3://b/4"});
  const Error error = error_of([&] { open({"s3://b/1", "s3://b/2", "s3://b/3"}); });
  EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("300000 bytes of 3 files"), HasSubstr("TRIREME_CACHE_SIZE")));
}

TEST_F(RemoteFilesTest, ADamagedFileIsFetchedAgain) {
  server.put("b/x.bin", million);
  const RemoteFiles files = open({"s3://b/x.bin"});
  const fs::path file = cached().front();
  fs::resize_file(file, 1000);
  EXPECT_EQ(content_of(files.open(0)), million);
  std::fstream(file, std::ios::in | std::ios::out).seekp(5) << "damage";
  EXPECT_EQ(content_of(files.open(0)), million);
  fs::remove(file);
  EXPECT_EQ(content_of(files.open(0)), million);
  EXPECT_EQ(server.count("GET"), 4);
  fs::remove(file);
  server.put("b/x.bin", "another");
  const Error error = error_of([&] { files.open(0); });
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.message(), HasSubstr("has changed"));
}

TEST_F(RemoteFilesTest, AFullDiskIsSaidBeforeAnythingIsFetched) {
  fs::create_directories(environment.cache_folder);
  const test::SmallDisk disk(environment.cache_folder, "1536k");
  if (!disk.is_there()) GTEST_SKIP() << "mounting needs root";
  server.put("b/1", million);
  server.put("b/2", million);
  open({"s3://b/1"});
  const RemoteFiles second = open({"s3://b/2"});
  EXPECT_EQ(cached().size(), 1U) << "what nobody reads makes room";
  const Error error = failure("s3://b/1");
  EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("s3://b/1"), HasSubstr("No space left"),
                                     HasSubstr("TRIREME_CACHE_DIR")));
  EXPECT_EQ(server.count("GET /b/1"), 1);
}

}  // namespace
}  // namespace trireme::remote
