#include "trireme/plan/schedule/operation_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/schedule/step_cases.h"
#include "trireme/error.h"

namespace trireme::schedule {
namespace {

using testing::make_case;
using testing::StepCase;

StepCase skips_and_ties() {
  return make_case(testing::make_skips_and_ties(),
                   {.cuts = {1, 3}, .replicas = 2, .has_norm = true});
}

TEST(OperationText, EveryOperationParsesBack) {
  const StepCase step = skips_and_ties();
  const ProgramIndex index(step.program);
  for (std::size_t rank = 0; rank < step.program.ranks.size(); ++rank) {
    for (const Operation& operation : step.program.ranks[rank]) {
      const std::string text = to_text(step.program, operation);
      EXPECT_EQ(parse_operation(index, static_cast<int>(rank), text), operation) << text;
    }
  }
}

TEST(OperationText, OtherTextIsRefused) {
  const StepCase step = skips_and_ties();
  const ProgramIndex index(step.program);
  // Rank 0 runs stage 0: it sends v3 to stages 1 and 2 and receives nothing from stage 2 but
  // site 1.
  EXPECT_NO_THROW(parse_operation(index, 0, "send v3 m0 0>2"));
  for (const char* bad : {"",
                          "send",
                          "send ",
                          "send v3",
                          "send v3 m0",
                          "send v3 m0 0>",
                          "send v3 m0 0>2 ",
                          "send v3 m0 2>0",
                          "recv v3 m0 0>2",
                          "recv g3 m0 2>0",
                          "send v03 m0 0>2",
                          "send v-3 m0 0>2",
                          "send v3 0>2",
                          "send site 1 m0 0>2",
                          "compute",
                          "compute 0F",
                          "compute 0X0",
                          "exchanges",
                          "exchange 1",
                          "reduce 1",
                          "reduce bucket",
                          "reduce bucket 00",
                          "tie",
                          "Send v3 m0 0>2",
                          "send v99999999999 m0 0>2"}) {
    try {
      parse_operation(index, 0, bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << bad;
      EXPECT_THAT(error.message(), ::testing::HasSubstr("is not an")) << bad;
    }
  }
  EXPECT_THROW(parse_operation(index, 99, "exchange"), Error);
}

TEST(OperationText, AChannelThatIsNoneHasATextToo) {
  const StepCase step = skips_and_ties();
  EXPECT_EQ(to_text(step.program, {.kind = OperationKind::kSend, .channel = 99, .item = 3}),
            "send item 3 on no channel (99)");
  EXPECT_EQ(to_text(step.program, {.kind = OperationKind::kRecv}),
            "recv item -1 on no channel (-1)");
}

}  // namespace
}  // namespace trireme::schedule
