#include "trireme/plan/schedule/check_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/plan/schedule/step_cases.h"
#include "trireme/error.h"

namespace trireme::schedule {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::make_case;
using testing::StepCase;

std::string parameter_complaint(const StepCase& step) {
  try {
    check_parameters(step.program, step.graph, step.plan, step.map);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

TEST(CheckParameters, AcceptsEveryGeneratedProgram) {
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(parameter_complaint(testing::make_random_case(random)), "") << i << ", seed 11";
  }
}

/// What is left once all ranks leave out some operations, as if the facts that the program was written from had none of them.
std::string complaint_without(StepCase step, const std::function<bool(const Operation&)>& lost) {
  for (std::vector<Operation>& operations : step.program.ranks) std::erase_if(operations, lost);
  return parameter_complaint(step);
}

/// `t` of node 0 is used in nodes 1 and 3 too, which other ranks run.
TEST(CheckParameters, AUseWhoseGradientOrValueDoesNotTravelIsNamed) {
  const StepCase step = make_case(testing::make_skips_and_ties(), {.cuts = {1, 3}});
  for (const auto& [kind, text] :
       {std::pair(ChannelKind::kTieGradient, "a gradient of 't' from stage"),
        std::pair(ChannelKind::kTieValue, "the value of 't' from stage 0")}) {
    const auto lost = [&](const Operation& operation) {
      return operation.channel >= 0 && step.program.channels[operation.channel].kind == kind;
    };
    EXPECT_THAT(complaint_without(step, lost), HasSubstr(text));
    StepCase again = step;
    for (std::vector<Operation>& operations : again.program.ranks) {
      const auto found = std::ranges::find_if(operations, lost);
      if (found == operations.end()) continue;
      const Operation message = *found;
      operations.insert(found, message);
      break;
    }
    EXPECT_THAT(parameter_complaint(again), HasSubstr("which nobody needs, or again"));
  }
}

StepCase tied_replicas() {
  return make_case(testing::make_skips_and_ties(), {.cuts = {1, 3}, .replicas = 2});
}

TEST(CheckParameters, ABucketThatIsNotSummedIsNamed) {
  for (int bucket = 0; bucket < static_cast<int>(tied_replicas().map.buckets.size()); ++bucket) {
    const auto is_about = [&](const Operation& operation) {
      return operation.kind == OperationKind::kReduce || operation.kind == OperationKind::kJoin
                 ? operation.item == bucket
                 : false;
    };
    EXPECT_THAT(complaint_without(tied_replicas(), is_about),
                AnyOf(HasSubstr("bucket " + std::to_string(bucket) + " is "),
                      HasSubstr("it sends a gradient of 't' from stage 2 to stage 0 before that")));
  }
  StepCase one = make_case(testing::make_skips_and_ties(), {.cuts = {1, 3}});
  one.program.ranks[0].insert(one.program.ranks[0].begin(),
                              {.kind = OperationKind::kReduce, .group = 1, .item = 0});
  EXPECT_THAT(parameter_complaint(one), HasSubstr("bucket 0 is not summed with the last backward"));
}

TEST(CheckParameters, ASumThatStartsWithAnEarlierBackwardIsNamed) {
  StepCase step = tied_replicas();
  std::vector<Operation>& operations = step.program.ranks[0];
  const auto reduce = std::ranges::find(operations, OperationKind::kReduce, &Operation::kind);
  ASSERT_NE(reduce, operations.end());
  std::rotate(operations.begin(), reduce, reduce + 1);
  EXPECT_THAT(parameter_complaint(step),
              HasSubstr("is not summed with the last backward of stage 0"));
}

TEST(CheckParameters, ASumOverOthersThanTheReplicasIsNamed) {
  StepCase step = tied_replicas();
  const auto reduce =
      std::ranges::find(step.program.ranks[0], OperationKind::kReduce, &Operation::kind);
  reduce->group = 0;
  EXPECT_THAT(parameter_complaint(step), HasSubstr("over others than the replicas"));
}

TEST(CheckParameters, AGatherThatIsMissingOrForNobodyIsNamed) {
  const auto is_gather = [](const Operation& o) { return o.kind == OperationKind::kGather; };
  const StepCase step = make_case(testing::make_skips_and_ties(),
                                  {.cuts = {1, 3}, .replicas = 2, .shards_state = true});
  EXPECT_EQ(parameter_complaint(step), "");
  EXPECT_THAT(complaint_without(step, is_gather),
              HasSubstr("the value of 't' from stage 0 to stage 2 before that is new"));
  const StepCase untied =
      make_case(testing::make_losses(), {.cuts = {1, 3}, .replicas = 2, .shards_state = true});
  EXPECT_THAT(complaint_without(untied, is_gather), HasSubstr("is never gathered"));
  StepCase whole = step;
  whole.plan.sharded_state = false;
  EXPECT_THAT(parameter_complaint(whole), HasSubstr("is gathered for nobody"));
}

TEST(CheckParameters, AStageThatRunsInShardsIsNamed) {
  const StepCase step =
      make_case(testing::make_losses(),
                {.cuts = {1, 3}, .replicas = 2, .shards_state = true, .shards_parameters = true});
  EXPECT_EQ(parameter_complaint(step), "");
  for (const OperationKind kind : {OperationKind::kUnshard, OperationKind::kAwait}) {
    EXPECT_NE(complaint_without(step, [&](const Operation& o) { return o.kind == kind; }), "");
  }
  const auto is_move = [](const Operation& o) {
    return o.kind == OperationKind::kUnshard || o.kind == OperationKind::kAwait;
  };
  EXPECT_THAT(complaint_without(step, is_move), HasSubstr("is in shards"));
  const auto is_reshard = [](const Operation& o) { return o.kind == OperationKind::kReshard; };
  EXPECT_NE(complaint_without(step, is_reshard), "");
}

}  // namespace
}  // namespace trireme::schedule
