#include "tests/command/resume.h"

namespace trireme::command::test {
namespace {

TEST_F(Resume, AfterAHundredKills) { expect_same_bits_after_kills(100, 11); }

}  // namespace
}  // namespace trireme::command::test
