#include "trireme/base/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "trireme/error.h"

namespace trireme {
namespace {

Environment read(const std::map<std::string, std::string>& variables) {
  return read_environment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(Environment, HasDefaults) {
  EXPECT_EQ(read({}).log_level, LogLevel::kInfo);
  EXPECT_EQ(read({{"TRIREME_LOG", ""}}).log_level, LogLevel::kInfo);
}

TEST(Environment, ReadsTheLogLevel) {
  EXPECT_EQ(read({{"TRIREME_LOG", "debug"}}).log_level, LogLevel::kDebug);
}

TEST(Environment, ReadsHowARankThatIsKnownReachesOthers) {
  const auto read_those = [](const std::map<std::string, std::string>& variables) {
    return read_connections([&](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
  };
  EXPECT_TRUE(read_those({{"RANK", "no number, and not read"}}).shares_memory);
  const RankEnvironment rank =
      read_those({{"TRIREME_INTERFACE", "eth1"}, {"TRIREME_TRANSPORT", "tcp"}});
  EXPECT_EQ(rank.interface, "eth1");
  EXPECT_FALSE(rank.shares_memory);
  EXPECT_THROW(read_those({{"TRIREME_HOST", "a"}, {"TRIREME_INTERFACE", "b"}}), Error);
}

TEST(Environment, ReadsTheLimitOfInstructions) {
  EXPECT_EQ(read({}).isa_limit, std::nullopt);
  for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    EXPECT_EQ(read({{"TRIREME_ISA", to_string(isa)}}).isa_limit, isa);
  }
  EXPECT_THROW(read({{"TRIREME_ISA", "sse"}}), Error);
}

TEST(Environment, ReadsWhichPythonToUse) {
  EXPECT_FALSE(read({}).python);
  EXPECT_FALSE(read({{"TRIREME_PYTHON", ""}}).python);
  EXPECT_EQ(read({{"TRIREME_PYTHON", "/usr/bin/python3"}}).python, "/usr/bin/python3");
}

// Who looks at a job's store from outside.
TEST(Environment, ReadsTheTokenAlsoWhereThereIsNoRank) {
  EXPECT_EQ(read({{"TRIREME_TOKEN", "secret"}}).token.text, "secret");
  EXPECT_EQ(read({{"TRIREME_TOKEN_FILE", "/a/file"}}).token.file, "/a/file");
  try {
    read({{"TRIREME_TOKEN", "secret"}, {"TRIREME_TOKEN_FILE", "/a/file"}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  }
}

TEST(Environment, NamesTheVariableThatMakesNoSense) {
  try {
    read({{"TRIREME_LOG", "loud"}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), ::testing::StartsWith("environment variable TRIREME_LOG: 'loud'"));
  }
}

TEST(Environment, OneProcessIsNoRank) {
  EXPECT_FALSE(read({}).ranks);
  EXPECT_FALSE(read({{"RANK", ""}, {"TRIREME_RANK", ""}, {"WORLD_SIZE", "4"}}).ranks);
}

using Variables = std::map<std::string, std::string>;

Variables own_variables() {
  return {{"TRIREME_RANK", "2"},
          {"TRIREME_WORLD_SIZE", "4"},
          {"TRIREME_STORE_HOST", "127.0.0.1"},
          {"TRIREME_STORE_PORT", "1234"},
          {"TRIREME_LAUNCHER_PID", "77"}};
}

Variables variables_by_hand() {
  return {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "host"}, {"MASTER_PORT", "65535"}};
}

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

TEST(Environment, ReadsTheRankOfOurLauncher) {
  Variables variables = variables_by_hand();  // ours counts
  variables.merge(own_variables());
  const RankEnvironment ranks = read(variables).ranks.value();
  EXPECT_EQ(ranks.launcher, Launcher::kTrireme);
  EXPECT_EQ(ranks.rank, 2);
  EXPECT_EQ(ranks.world_size, 4);
  EXPECT_EQ(ranks.launcher_pid, 77);
  EXPECT_EQ(ranks.store_host, "127.0.0.1");
  EXPECT_EQ(ranks.store_port, 1234);
}

TEST(Environment, ReadsTheRankOfOtherLaunchers) {
  const RankEnvironment ranks = read(variables_by_hand()).ranks.value();
  EXPECT_EQ(ranks.launcher, Launcher::kOther);
  EXPECT_EQ(ranks.rank, 0);
  EXPECT_EQ(ranks.world_size, 1);
  EXPECT_EQ(ranks.store_host, "host");
  EXPECT_EQ(ranks.store_port, 65535);
}

TEST(Environment, KnowsTorchrunAndItsAttempt) {
  auto variables = with(variables_by_hand(), "TORCHELASTIC_USE_AGENT_STORE", "True");
  EXPECT_EQ(read(variables).ranks->launcher, Launcher::kTorchrun);
  EXPECT_EQ(read(variables).ranks->generation, "0");
  variables["TORCHELASTIC_RESTART_COUNT"] = "3";
  EXPECT_EQ(read(variables).ranks->generation, "3");
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_EQ(read(variables).ranks->launcher, Launcher::kOther);
}

std::string refusal(const std::map<std::string, std::string>& variables) {
  try {
    read(variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "accepted";
}

TEST(Environment, ARankNeedsAllOfItsVariables) {
  for (const Variables& all : {own_variables(), variables_by_hand()}) {
    const std::string rank = all.contains("TRIREME_RANK") ? "TRIREME_RANK" : "RANK";
    for (const auto& [name, value] : all) {
      if (name == rank) continue;
      const std::string expected = "environment variable " + name + " is not set, though " + rank +
                                   " is; a launcher sets both";
      EXPECT_EQ(refusal(with(all, name, "")), expected);
      Variables fewer = all;
      fewer.erase(name);
      EXPECT_EQ(refusal(fewer), expected);
    }
  }
}

TEST(Environment, NumbersOfRanksAreNumbers) {
  for (const std::string& text :
       std::vector<std::string>{"one", "-1", "1x", " 1", "1.5", "99999999999"}) {
    EXPECT_EQ(refusal(with(own_variables(), "TRIREME_RANK", text)),
              "environment variable TRIREME_RANK: '" + text + "' is no number from 0 to 1048575");
    EXPECT_EQ(refusal(with(variables_by_hand(), "WORLD_SIZE", text)),
              "environment variable WORLD_SIZE: '" + text + "' is no number from 0 to 1048576");
  }
  EXPECT_EQ(refusal(with(variables_by_hand(), "MASTER_PORT", "65536")),
            "environment variable MASTER_PORT: '65536' is no number from 1 to 65535");
  EXPECT_EQ(refusal(with(own_variables(), "TRIREME_STORE_PORT", "http")),
            "environment variable TRIREME_STORE_PORT: 'http' is no number from 1 to 65535");
  EXPECT_EQ(refusal(with(own_variables(), "TRIREME_STORE_PORT", "0")),
            "environment variable TRIREME_STORE_PORT: '0' is no number from 1 to 65535");
}

TEST(Environment, RanksCountFromZero) {
  EXPECT_EQ(refusal(with(own_variables(), "TRIREME_RANK", "4")),
            "environment variable TRIREME_RANK is 4, TRIREME_WORLD_SIZE is 4; ranks count from 0");
  EXPECT_EQ(refusal(with(variables_by_hand(), "WORLD_SIZE", "0")),
            "environment variable RANK is 0, WORLD_SIZE is 0; ranks count from 0");
}

}  // namespace
}  // namespace trireme
