// A run whose evaluations are made by `follow`, while it trains.

#include "tests/command/resume.h"
#include "trireme/base/json.h"

namespace trireme::command::test {
namespace {

using testing::HasSubstr;

class Followed : public Resume {
 protected:
  static Words followed(const std::string& run, int ranks, const Words& more) {
    Words words = training(run, ranks, 1'000'000);
    *(std::find(words.begin(), words.end(), "--checkpoint-every") + 1) = "0";
    words.insert(words.end(),
                 {"--evaluate-elsewhere", "--evaluate-every", "20", "--keep-best", "1"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  /// Made by `partition`, for a batch of 8; nothing else says so.
  std::string plan_of_two_ranks() {
    run({"--model", "transformer", "record", "--out", path("recorded")});
    run({"--model", "transformer", "partition", "--graph", path("recorded/train.graph.json"),
         "--batch", "8", "--microbatch", "2", "--lanes", "2", "--stages", "2", "--out",
         path("recorded/plan.json")});
    return path("recorded/plan.json");
  }

  std::vector<std::int64_t> evaluated_steps() const {
    std::vector<std::int64_t> steps;
    for (const std::string& line : lines_of(text_of(path("run") + "/metrics.jsonl"))) {
      const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (json.is_object() && json.contains("evaluation")) {
        steps.push_back(json["step"].get<std::int64_t>());
      }
    }
    return steps;
  }
};

TEST_F(Followed, AnEvaluationThatIsGoodEnoughStopsTheRun) {
  const auto run =
      start({"--model", "transformer", "train", "--plan", plan_of_two_ranks(), "--run", path("run"),
             "--steps", "1000000", "--no-drift-check", "--evaluate-elsewhere", "--evaluate-every",
             "20", "--keep-best", "1", "--target", "1000"});
  wait_for_steps(1);
  const auto follower = start({"follow", "--run", path("run")});
  EXPECT_EQ(run->wait(), 0) << run->error() << errors();
  EXPECT_THAT(run->out(), HasSubstr("the evaluation's loss is"));
  EXPECT_EQ(follower->wait(), 0) << follower->error();
  const auto steps = evaluated_steps();
  ASSERT_FALSE(steps.empty());
  EXPECT_THAT(steps, testing::Each(testing::ResultOf([](auto s) { return s % 20; }, 0)));
  EXPECT_THAT(follower->out(),
              HasSubstr("after " + std::to_string(steps[0]) + " steps, evaluation"));
  EXPECT_TRUE(std::filesystem::exists(checkpoints("run").published(steps[0]))) << "it is the best";
}

TEST_F(Followed, WhoFollowsMayBeKilledAndAnotherGoesOn) {
  const auto run = start(followed(path("run"), 2, {"--steps", "1000000"}));
  wait_for_steps(1);
  {
    const auto follower = start({"follow", "--run", path("run"), "--ranks", "2", "--stages", "2"});
    wait_until([&] { return evaluated_steps().size() > 1; }, "an evaluation by two ranks");
    follower->kill();
  }
  const std::size_t num_before = evaluated_steps().size();
  const auto follower = start({"follow", "--run", path("run")});
  wait_until([&] { return evaluated_steps().size() > num_before + 1; }, "one by another");
  ASSERT_EQ(::kill(run->pid(), SIGTERM), 0);
  EXPECT_EQ(run->wait(), 0) << run->error() << errors();
  EXPECT_EQ(follower->wait(), 0) << follower->error();
  EXPECT_THAT(run->out(), HasSubstr("best_checkpoint"));
}

}  // namespace
}  // namespace trireme::command::test
