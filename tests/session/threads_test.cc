#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/session/session_fixture.h"
#include "trireme/plan/layout/plan.h"

namespace trireme {
namespace {

using testing::HasSubstr;

TEST_F(SessionTest, ComputesWithTheThreadsOfItsPlan) {
  SessionOptions wanted = options(1);
  wanted.planning.threads = 2;
  wanted.plan = make_plan(record_graph(make_two_modules, 2), wanted.planning);
  wanted.planning.threads = 1;
  Session(world_, make_two_modules, wanted).run();
  EXPECT_EQ(at::get_num_threads(), 2);
  const Measurement measured =
      measure_model(world_, make_two_modules, {.microbatch = 2, .threads = 3});
  EXPECT_EQ(at::get_num_threads(), 3);
  wanted.planning.threads = 2;
  EXPECT_THAT(refusal([&] {
                make_plan(measured.graph, measured.profile, measured.topology, wanted.planning);
              }),
              HasSubstr("measured with --threads 3 and --threads says 2"));
  wanted.planning.threads = 1;
  wanted.plan =
      make_plan(measured.graph, measured.profile, measured.topology, wanted.planning).plan;
  EXPECT_THAT(wanted.plan->show(measured.graph), HasSubstr("each rank with 3 threads"));
  wanted.plan.reset();
  Session(world_, make_two_modules, wanted).run();
  EXPECT_EQ(at::get_num_threads(), 1);
  wanted.planning.threads = 0;
  EXPECT_THAT(refusal([&] { Session(world_, make_two_modules, wanted); }),
              HasSubstr("--threads is 0"));
}

}  // namespace
}  // namespace trireme
