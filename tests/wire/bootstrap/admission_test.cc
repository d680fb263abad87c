// Who has the job's token, and who has not.

#include "trireme/wire/bootstrap/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>

#include "tests/wire/system/threads.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using State = Admission::State;

struct Pair {
  Descriptor listening;
  Descriptor connecting;
};

Pair make_pair_of_sockets() {
  std::array<int, 2> numbers{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, numbers.data()), 0);
  return {Descriptor(numbers[0]), Descriptor(numbers[1])};
}

/// Hears until there is a verdict.
State verdict_of(Admission& admission) {
  State state = State::kHearing;
  while (state == State::kHearing && wait_readable(admission.socket(), Clock::now() + 5s)) {
    state = admission.hear();
  }
  return state;
}

struct Outcome {
  State listener = State::kHearing;
  std::optional<Error> connector;
};

/// One who connects with `token` to one who listens with "secret" at the door "store".
Outcome connect_with(const Token& token, const std::string& door) {
  Pair pair = make_pair_of_sockets();
  auto connector = std::async(std::launch::async, [&]() -> std::optional<Error> {
    try {
      EXPECT_TRUE(enter(pair.connecting, token, door, "it", wait_until(Clock::now() + 5s, "it")));
    } catch (const Error& error) {
      return error;
    }
    return std::nullopt;
  });
  const Token own("secret");
  Admission admission(std::move(pair.listening), own, "store");
  const State state = verdict_of(admission);
  return {state, connector.get()};
}

std::vector<std::byte> read_available(const Descriptor& socket) {
  std::array<std::byte, 1000> buffer;
  const std::size_t count = read_some(socket, buffer).value_or(0);
  return {buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(count)};
}

TEST(Admission, TheSameTokenIsAdmitted) {
  const Outcome outcome = connect_with(Token("secret"), "store");
  EXPECT_EQ(outcome.listener, State::kAdmitted);
  EXPECT_FALSE(outcome.connector.has_value());
}

TEST(Admission, AnotherTokenOrDoorIsRefused) {
  for (const auto& [token, door] :
       {std::pair{"other", "store"}, std::pair{"", "store"}, std::pair{"secret", "rank"}}) {
    const Outcome outcome = connect_with(Token(token), door);
    EXPECT_EQ(outcome.listener, State::kRefused) << token << door;
    ASSERT_TRUE(outcome.connector.has_value());
    EXPECT_EQ(outcome.connector->kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(outcome.connector->message(), HasSubstr("TRIREME_TOKEN_FILE"));
  }
}

// Who records a connection and plays it again has the proof for another nonce.
TEST(Admission, ARecordedProofIsRefused) {
  const Token token("secret");
  std::vector<std::byte> recorded;
  {
    Pair pair = make_pair_of_sockets();
    Pair relay = make_pair_of_sockets();
    Admission admission(std::move(pair.listening), token, "store");
    write_some(relay.listening, read_available(pair.connecting));
    auto connector = std::async(std::launch::async, [&] {
      return enter(relay.connecting, token, "store", "it", wait_until(Clock::now() + 5s, "it"));
    });
    ASSERT_TRUE(wait_readable(relay.listening, Clock::now() + 5s));
    recorded = read_available(relay.listening);
    ASSERT_EQ(recorded.size(), kProofBytes);
    write_some(pair.connecting, recorded);
    EXPECT_EQ(verdict_of(admission), State::kAdmitted);  // so the recording is a true one
    write_some(relay.listening, read_available(pair.connecting));
    EXPECT_TRUE(connector.get());
  }
  Pair pair = make_pair_of_sockets();
  Admission admission(std::move(pair.listening), token, "store");
  write_some(pair.connecting, recorded);
  EXPECT_EQ(verdict_of(admission), State::kRefused);
}

TEST(Admission, TheConnectorNoticesAFalseListener) {
  Pair pair = make_pair_of_sockets();
  auto connector = std::async(std::launch::async, [&] {
    return error_of_call([&] {
      enter(pair.connecting, Token("secret"), "store", "it", wait_until(Clock::now() + 5s, "it"));
    });
  });
  std::vector<std::byte> bytes(kChallengeBytes);
  const std::string_view magic = "TRIREME?";
  std::copy_n(std::as_bytes(std::span(magic)).begin(), magic.size(), bytes.begin());
  write_some(pair.listening, bytes);
  ASSERT_TRUE(wait_readable(pair.listening, Clock::now() + 5s));
  bytes[7] = std::byte{'+'};  // says yes without a proof
  write_some(pair.listening, bytes);
  EXPECT_EQ(connector.get().kind(), ErrorKind::kInvalidArgument);
}

// Another program may have taken the port, and wait for us: ranks waited for the whole deadline.
TEST(Admission, WhoSaysNothingIsNotWaitedForUntilTheDeadline) {
  const Pair pair = make_pair_of_sockets();
  const auto start = Clock::now();
  const Error error = error_of_call([&] {
    enter(pair.connecting, Token("secret"), "store", "the store at x:1",
          wait_until(Clock::now() + 60s, "the store at x:1", 50ms));
  });
  EXPECT_LT(Clock::now() - start, 10s);
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.message(), HasSubstr("does another program use it?"));
}

TEST(Admission, OtherBytesAreGarbageAtOnce) {
  const Token token("secret");
  Pair pair = make_pair_of_sockets();
  Admission admission(std::move(pair.listening), token, "store");
  write_some(pair.connecting, std::as_bytes(std::span("G", 1)));
  EXPECT_EQ(verdict_of(admission), State::kGarbage);
  EXPECT_THAT(error_of_call([&] {
                Pair other = make_pair_of_sockets();
                write_some(other.listening, random_bytes(1, kChallengeBytes));
                enter(other.connecting, token, "store", "the store at x:1",
                      wait_until(Clock::now() + 5s, "it"));
              }).message(),
              HasSubstr("the store at x:1 is served by another program"));
}

// ---- Files of tokens

class TokenFile : public testing::Test {
 protected:
  TokenFile() { std::filesystem::create_directories(folder); }
  ~TokenFile() override { std::filesystem::remove_all(folder); }

  std::string make(const std::string& text, mode_t mode) const {
    const std::string path = folder + "/token";
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  const std::string folder = testing::TempDir() + "/token" + std::to_string(::getpid());
};

TEST_F(TokenFile, IsReadWhereOnlyTheOwnerMay) {
  for (const mode_t mode : {0600U, 0400U}) {
    EXPECT_EQ(read_token_file(make("0123456789abcdef\n", mode)), "0123456789abcdef");
    std::filesystem::remove(folder + "/token");
  }
}

TEST_F(TokenFile, IsRefusedWhereOthersMay) {
  for (const mode_t mode : {0644U, 0640U, 0602U, 0700U}) {
    const Error error = error_of_call([&] { read_token_file(make("0123456789abcdef", mode)); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("chmod 600 " + folder + "/token"));
  }
}

TEST_F(TokenFile, IsRefusedWhereItHoldsNoSecret) {
  EXPECT_THAT(error_of_call([&] { read_token_file(make("short\n\n", 0600)); }).message(),
              HasSubstr("openssl rand"));
  EXPECT_THAT(error_of_call([&] { read_token_file(make(std::string(5000, 'x'), 0600)); }).message(),
              HasSubstr("more than 4096 bytes"));
  EXPECT_THAT(error_of_call([&] { read_token_file(folder); }).message(),
              HasSubstr("no regular file"));
  EXPECT_EQ(error_of_call([&] { read_token_file(folder + "/none"); }).kind(), ErrorKind::kIo);
}

TEST(Token, IsDerivedFromTheJobWhereNoneIsGiven) {
  const Logger logger(LogLevel::kOff);
  const auto signature = [&](const RankEnvironment& environment) {
    return token_of_job(environment, logger).sign({});
  };
  const RankEnvironment one{.rank = 0, .store_host = "a", .store_port = 5, .job_id = "7"};
  RankEnvironment other = one;
  other.rank = 3;
  other.store_host = "a.example";
  EXPECT_EQ(signature(one), signature(other));
  other.job_id = "8";
  EXPECT_NE(signature(one), signature(other));
  other = one;
  other.generation = "1";
  EXPECT_NE(signature(one), signature(other));
  other.token = "a secret";
  RankEnvironment third = one;
  third.token = "a secret";
  EXPECT_EQ(signature(third), signature(other));
}

// RANK and MASTER_PORT alone give a generation and no id.
TEST(Token, OfAStoreIsThatOfAJobWithoutAnId) {
  const Logger logger(LogLevel::kOff);
  const Token of_rank = token_of_job({.rank = 1, .store_port = 5, .generation = "0"}, logger);
  EXPECT_EQ(token_of_store({}, 5, logger).sign({}), of_rank.sign({}));
  EXPECT_NE(token_of_store({}, 6, logger).sign({}), of_rank.sign({}));
  EXPECT_EQ(token_of_store({.token = {.text = "a secret", .file = ""}}, 5, logger).sign({}),
            Token("a secret").sign({}));
}

}  // namespace
}  // namespace trireme::transport::test
