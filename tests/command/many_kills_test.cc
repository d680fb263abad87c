#include "tests/command/resume.h"

namespace trireme::command::test {
namespace {

TEST_F(Resume, AfterAHundredKills) { expect_same_bits_after_kills(100, 11); }

TEST_F(Resume, AfterAHundredKillsInBf16WithSharedState) {
  expect_same_bits_after_kills(100, 12, {"--precision", "bf16", "--shard-state"});
}

}  // namespace
}  // namespace trireme::command::test
