#include "trireme/engine/pipeline/step_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/base/error_of.h"
#include "trireme/wire/endpoint/sim/world.h"

namespace trireme::pipeline {
namespace {

using schedule::OperationKind;

/// Keeps what it is asked for; fails at joins.
class Calls : public Operations {
 public:
  void run(const schedule::Operation& operation) override {
    if (operation.kind == OperationKind::kJoin) throw std::runtime_error("no sum");
    texts.push_back(schedule::to_text({}, operation));
  }
  void begin_action(const schedule::Action& /*action*/) override {}
  void end_action(const schedule::Action& /*action*/) override {}
  const std::vector<double>& totals() const override { return no_totals; }
  std::span<std::byte> tie_memory(const schedule::Channel& /*channel*/, int /*item*/) override {
    return {};
  }

  std::vector<std::string> texts;
  std::vector<double> no_totals;
};

/// Rank 0's part of step 7: operations of these kinds, about bucket 2.
void run_step(const std::vector<OperationKind>& kinds, Calls& calls, std::string purpose = "") {
  schedule::StepProgram program;
  program.ranks.resize(1);
  for (const OperationKind kind : kinds) {
    schedule::Operation& operation = program.ranks[0].emplace_back();
    operation.kind = kind;
    operation.item = 2;
  }
  const auto endpoints = transport::make_sim_world(1);
  Mailbox mailbox(program, 0, *endpoints[0], {});
  StepRunner runner(program, 0, {}, calls, mailbox);
  StepInput input;
  input.step = 7;
  input.purpose = std::move(purpose);
  runner.run(input);
  EXPECT_EQ(runner.times().size(), kinds.size());
}

TEST(StepRunner, OperationsAreRunInOrder) {
  Calls calls;
  run_step({OperationKind::kWeigh, OperationKind::kReduce, OperationKind::kExchange,
            OperationKind::kUpdate},
           calls);
  EXPECT_THAT(calls.texts, testing::ElementsAre("weigh", "reduce bucket 2", "exchange", "update"));
}

TEST(StepRunner, AnErrorSaysInWhichOperationOfWhichStep) {
  Calls calls;
  const Error error = trireme::test::error_of([&] { run_step({OperationKind::kJoin}, calls); });
  EXPECT_THAT(error.what(), testing::HasSubstr("no sum"));
  EXPECT_EQ(error.context().rank, 0);
  EXPECT_EQ(error.context().operation, "join bucket 2");
  EXPECT_EQ(error.context().step, 7);
}

TEST(StepRunner, AnErrorOfAnEvaluationSaysSo) {
  Calls calls;
  const Error error = trireme::test::error_of(
      [&] { run_step({OperationKind::kJoin}, calls, " of the evaluation"); });
  EXPECT_EQ(error.context().operation, "join bucket 2 of the evaluation");
}

}  // namespace
}  // namespace trireme::pipeline
