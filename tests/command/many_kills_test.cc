#include "tests/command/resume.h"

namespace trireme::command::test {
namespace {

TEST_F(Resume, AfterAHundredKills) { expect_same_bits_after_kills(100, 11); }

TEST_F(Resume, AfterAHundredKillsInBf16WithSharedState) {
  expect_same_bits_after_kills(100, 12, {"--precision", "bf16", "--shard-state"});
}

TEST_F(Resume, AfterAHundredKillsWithParametersInShards) {
  expect_same_bits_after_kills(
      100, 14, {"--shard-parameters", "--schedule", "simple", "--stages-per-rank", "2"});
}

}  // namespace
}  // namespace trireme::command::test
