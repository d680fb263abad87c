#include "trireme/plan/schedule/step_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/graphs/graph_builder.h"
#include "tests/graphs/sample_graphs.h"
#include "trireme/base/error.h"
#include "trireme/plan/graph/json.h"
#include "trireme/plan/layout/manual.h"

namespace trireme::schedule {
namespace {

/// A rank's operations, ` | ` between them.
std::string picture(const StepProgram& program, int rank) {
  std::string text;
  for (const Operation& operation : program.ranks.at(rank)) {
    text += (text.empty() ? "" : " | ") + to_text(program, operation);
  }
  return text;
}

TEST(StepProgram, TwoStagesOfTheMlp) {
  const graph::Graph graph = graph::testing::make_mlp();
  const std::vector<int> cuts = {2};
  const layout::Plan plan =
      layout::make_manual_plan(graph, graph::graph_sha256(graph), cuts, {4, 2, 1});
  const StepProgram program =
      make_step_program(graph, plan, parameters::make_parameter_map(graph, plan), {});
  EXPECT_EQ(picture(program, 0),
            "compute 0F0 | send v6 m0 0>1 | compute 0F1 | send v6 m1 0>1 | recv g6 m0 1>0 | "
            "compute 0B0 | recv g6 m1 1>0 | compute 0B1 | exchange | tie sum | commit | update");
}

}  // namespace
}  // namespace trireme::schedule
