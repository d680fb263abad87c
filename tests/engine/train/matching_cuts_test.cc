#include "trireme/plan/layout/matching_cuts.h"

#include <gmock/gmock.h>

#include "tests/engine/train/layouts.h"

namespace trireme::train {
namespace {

/// The cuts of the model's eval recording, or the refusal.
std::string match(const std::string& name, int num_stages) {
  const models::TestModel test = models::make(name);
  const auto record = [&](graph::Mode mode) {
    return record::record(test.model, test.make_batch, mode).graph;
  };
  const graph::Graph train = record(graph::Mode::kTrain);
  const layout::Plan plan = layout::make_manual_plan(train, graph::graph_sha256(train),
                                                     layout::even_cuts(train, num_stages), {4, 2});
  const graph::Graph eval = record(graph::Mode::kEval);
  try {
    const auto cuts = layout::matching_cuts(train, plan, eval);
    layout::make_manual_plan(eval, graph::graph_sha256(eval), cuts, {4, 2});
  } catch (const Error& error) {
    return error.message();
  }
  return "matched";
}

// Every layout of the test models can be evaluated.
TEST(MatchingCuts, AreFoundForTheTestModels) {
  for (const std::string& name : models::names()) {
    for (const int num_stages : {2, 3, 4}) {
      EXPECT_EQ(match(name, num_stages), "matched") << name << " in " << num_stages << " stages";
    }
  }
}

}  // namespace
}  // namespace trireme::train
