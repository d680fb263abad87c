#include "trireme/plan/layout/plan_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/base/document_form.h"
#include "trireme/error.h"

namespace trireme::layout {
namespace {

using ::testing::HasSubstr;

Plan full_plan() {
  Plan plan;
  plan.graph_sha256 = std::string(64, 'a');
  plan.profile_sha256 = std::string(64, 'b');
  plan.topology_sha256 = std::string(64, 'c');
  plan.objective = "speed";
  plan.balance = Balance::kTree;
  plan.batch = {32, 4, 2};
  plan.roles = {{"train", {2, 2, 1}, {0, 2, 1, 3}}, {"reader", {1, 1, 1}, {4}}};
  plan.stages = {{0, 5, {}, true, false}, {5, 9, {1}, false, true}};
  plan.stages[1].position = 0;
  plan.stages[0].regions = {2, 3};
  plan.schedule = {"interleaved", {{"virtual_stages", 2}}, {{"0F0", "1F0"}, {}}};
  plan.node_order = {1, 0, 2, 3, 4};
  plan.copied_nodes = {3, 4};
  plan.tie_owners = {{"embed.weight", 1}};
  plan.sharded_state = plan.sharded_parameters = true;
  plan.threads = 4;
  plan.bucket_bytes = 1 << 20;
  plan.prediction = Prediction{12.5,
                               std::numeric_limits<double>::infinity(),
                               {{{"activations", 100}, {"weights", 50}}, {}},
                               {"compute", "memory"}};
  return plan;
}

constexpr forms::DocumentForm<Plan> kForm{kPlanDocument, to_json, plan_from_json, save, load};

std::string complaint(const std::function<void(Json&)>& change) {
  return forms::complaint(kForm, full_plan(), change);
}

TEST(PlanJson, ReadsAsAPersonWouldWriteIt) {
  Plan plan;
  plan.graph_sha256 = std::string(64, 'a');
  plan.batch = {32, 4, 2};
  plan.roles = {{"train", {2, 1, 1}, {0, 1}}};
  plan.stages = {{0, 5}, {5, 9, {1}}};
  EXPECT_EQ(readable_text(to_json(plan)), R"({
  "batch": {"global_batch": 32, "lanes": 2, "microbatch": 4},
  "graph_sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
  "objective": "manual",
  "roles": [{"mesh": {"data": 1, "pipeline": 2, "shard": 1}, "name": "train", "placement": [0, 1]}],
  "schedule": {"name": "simple", "parameters": {}},
  "stages": [{"begin": 0, "end": 5}, {"begin": 5, "copies": [1], "end": 9}]
}
)");
}

TEST(PlanJson, PlanAndTextSurviveTheRoundTrip) {
  for (const Plan& plan : {full_plan(), Plan{}}) {
    if (plan.batch.global_batch == 0) continue;
    forms::expect_round_trip(kForm, plan);
  }
}

TEST(PlanJson, ABadFieldIsNamedByItsPlace) {
  EXPECT_EQ(complaint([](Json& json) { json.erase("batch"); }),
            "plan: the field \"batch\" is missing");
  EXPECT_EQ(complaint([](Json& json) { json["batch"]["lanes"] = 0; }),
            "plan.batch.lanes: expected a whole number of at least 1, got 0");
  EXPECT_THAT(complaint([](Json& json) { json["stages"][1]["begin"] = 1.5; }),
              HasSubstr("plan.stages[1].begin: expected a whole number"));
  EXPECT_THAT(complaint([](Json& json) { json["stages"][1]["copys"] = {1}; }),
              HasSubstr("plan.stages[1]: unknown field \"copys\""));
  EXPECT_THAT(complaint([](Json& json) { json["schedule"]["parameters"]["v"] = "2"; }),
              HasSubstr("plan.schedule.parameters.v: expected a whole number"));
  EXPECT_THAT(complaint([](Json& json) { json["balance"] = "fair"; }),
              HasSubstr("plan.balance: expected one of search, uniform, parameters, tree"));
  EXPECT_THAT(complaint([](Json& json) { json["prediction"]["step_ms"] = "fast"; }),
              HasSubstr("plan.prediction.step_ms"));
}

TEST(PlanJson, FilesLoadAndErrorsNameThem) { forms::expect_files(kForm, full_plan()); }

}  // namespace
}  // namespace trireme::layout
