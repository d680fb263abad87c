#include "trireme/plan/schedule/step_program_show.h"

#include <gtest/gtest.h>

namespace trireme::schedule {
namespace {

TEST(StepProgramShow, ListsChannelsGroupsAndOperations) {
  StepProgram program;
  program.num_microbatches = 1;
  program.channels = {{ChannelKind::kValue, 0, 1, 0, 1}};
  program.groups = {{GroupKind::kWorld, 0, {0, 1}}};
  const Action forward{ActionKind::kForward, 0, 0};
  program.ranks = {{{.kind = OperationKind::kCompute, .action = forward},
                    {.kind = OperationKind::kSend, .channel = 0, .item = 2, .microbatch = 0}},
                   {{.kind = OperationKind::kRecv, .channel = 0, .item = 2, .microbatch = 0},
                    {.kind = OperationKind::kUpdate}}};
  EXPECT_EQ(show(program), R"(step program of 2 ranks, 1 microbatches a replica

channels
  kind   from stage  to stage  from rank  to rank  messages  limit
  value           0         1          0        1         1      -

groups
  kind   index  ranks
  world      0  0 1

rank 0
  compute 0F0
  send v2 m0 0>1

rank 1
  recv v2 m0 0>1
  update
)");
}

}  // namespace
}  // namespace trireme::schedule
