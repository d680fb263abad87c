#include <optional>
#include <thread>

#include "tests/session/session_fixture.h"
#include "trireme/base/file_lock.h"
#include "trireme/base/json.h"
#include "trireme/session/best_checkpoints.h"
#include "trireme/session/followed_run.h"

namespace trireme {
namespace {

using testing::HasSubstr;

class Follow : public SessionTest {
 protected:
  SessionOptions followed(std::int64_t num_steps) const {
    SessionOptions result = kept(num_steps);
    result.run.evaluates_elsewhere = true;
    result.run.keep_best = 1;
    return result;
  }

  /// Some steps of a run that is not over; its evaluation then.
  StepLosses train(std::int64_t num_steps) {
    Session session(world_, make_two_modules, followed(100));
    while (session.next_step() < num_steps) session.run_step();
    session.save();
    return session.evaluate();
  }

  /// The losses of so many evaluations.
  std::vector<std::pair<std::int64_t, StepLosses>> follow(int stages, std::size_t most) {
    std::vector<std::pair<std::int64_t, StepLosses>> made;
    SessionOptions options = this->options(0);
    options.planning.stages = stages;
    options.serial = false;
    Session* self = nullptr;
    options.callbacks.on_evaluation = [&](std::int64_t step, const StepLosses& losses) {
      made.emplace_back(step, losses);
      if (made.size() == most) self->request_stop();
    };
    Session session(world_, make_two_modules, options);
    self = &session;
    const std::int64_t num_made = session.follow(path("run"));
    EXPECT_EQ(num_made, std::ssize(made));
    return made;
  }
};

TEST_F(Follow, FindsWhatTheRunWouldAndTheRunTakesIt) {
  const StepLosses expected = train(4);
  const auto made = follow(1, 1);
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].first, 4);
  ASSERT_EQ(made[0].second.losses.size(), expected.losses.size());
  EXPECT_EQ(made[0].second.losses[0].sum, expected.losses[0].sum);
  EXPECT_EQ(made[0].second.losses[0].weight, expected.losses[0].weight);

  std::vector<std::int64_t> told;
  SessionOptions options = followed(9);
  options.callbacks.on_evaluation = [&](std::int64_t step, const StepLosses&) {
    told.push_back(step);
  };
  Session session(world_, make_two_modules, options);
  EXPECT_EQ(session.resumed_from(), 4);
  session.run_step();
  EXPECT_THAT(told, testing::ElementsAre(4));
  const session::BestDocument best = session::load_best(path("run/best.json"));
  ASSERT_EQ(best.checkpoints.size(), 1U);
  EXPECT_EQ(best.checkpoints[0], (session::Judged{4, expected.total()}));
  EXPECT_THAT(text_of(path("run/metrics.jsonl")), HasSubstr("\"evaluation\""));
  session.run();
  EXPECT_EQ(told.size(), 1U) << "the last is told by the end";
  EXPECT_TRUE(std::filesystem::exists(path("run/checkpoints/step-4"))) << "it is the best";
  // A run that has ended is followed no longer.
  EXPECT_TRUE(follow(1, 9).empty());
}

TEST_F(Follow, EvaluationsOfLaterStepsAreMadeAgain) {
  const StepLosses expected = train(4);
  follow(1, 1);
  const session::RunFolder folder(path("run"));
  {
    std::ofstream file(path("run/evaluations.jsonl"), std::ios::app);
    file << session::line_of({.step = 90, .losses = expected}) << "{\"step\":";  // half a line
  }
  session::Evaluations evaluations(folder);
  const auto before = evaluations.begin(4);
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before[0].step, 4);
  EXPECT_EQ(before[0].losses.total(), expected.total());
  EXPECT_EQ(evaluations.take(), "");
  std::ofstream(path("run/evaluations.jsonl"), std::ios::app) << "{\"step\":6}\n{\"st";
  EXPECT_EQ(evaluations.take(), "") << "it has only begun";
  EXPECT_THAT(evaluations.begun(), testing::ElementsAre(6));
  EXPECT_FALSE(evaluations.is_one_coming()) << "nobody follows";
  const FileLock lock(path("run/following.lock"), std::chrono::milliseconds(0));
  EXPECT_TRUE(evaluations.is_one_coming());
  std::ofstream(path("run/evaluations.jsonl"), std::ios::app) << "ep\":7}\n";
  EXPECT_EQ(evaluations.take(), "");
  EXPECT_THAT(evaluations.begun(), testing::ElementsAre(6, 7));
  const std::string line = session::line_of({.step = 6, .losses = expected});
  std::ofstream(path("run/evaluations.jsonl"), std::ios::app) << line;
  EXPECT_EQ(evaluations.take(), line);
  EXPECT_THAT(evaluations.begun(), testing::ElementsAre(7));
  std::ofstream(path("run/evaluations.jsonl"), std::ios::app) << "{\"steps\":8}\n";
  EXPECT_THROW(evaluations.take(), Error);
}

TEST_F(Follow, TheEndWaitsForAnEvaluationThatHasBegun) {
  const StepLosses losses = train(2);
  const std::string file = path("run/evaluations.jsonl");
  std::optional<FileLock> lock(std::in_place, path("run/following.lock"),
                               std::chrono::milliseconds(0));
  std::vector<std::int64_t> told;
  SessionOptions options = followed(3);
  options.callbacks.on_evaluation = [&](std::int64_t step, const StepLosses&) {
    told.push_back(step);
  };
  Session session(world_, make_two_modules, options);
  std::ofstream(file, std::ios::app) << "{\"step\":2}\n";
  std::jthread follower([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::ofstream(file, std::ios::app) << session::line_of({.step = 2, .losses = losses});
    lock.reset();
  });
  session.run();
  EXPECT_THAT(told, testing::ElementsAre(2));
}

/// The whole run would wait for it, whatever it takes: SIGTERM, too.
TEST_F(Follow, AStopDoesNotWaitForAnEvaluation) {
  train(2);
  std::ofstream(path("run/evaluations.jsonl"), std::ios::app) << "{\"step\":2}\n";
  const FileLock lock(path("run/following.lock"), std::chrono::milliseconds(0));
  Session session(world_, make_two_modules, followed(100));
  session.request_stop();
  session.run_step();
  EXPECT_TRUE(session.stops());
  EXPECT_EQ(session.finish().steps_done, 3);
}

TEST_F(Follow, MisuseIsNamed) {
  const auto complaint = [&](const MakeWorkload& make, ErrorKind kind) {
    World world;  // which a failure ends
    Session session(world, make, options(0));
    try {
      session.follow(path("run"));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.message();
      return error.message();
    }
    return std::string("nothing");
  };
  EXPECT_THAT(complaint(make_two_modules, ErrorKind::kIo), HasSubstr("holds no run"));
  train(2);
  const auto without = [] {
    Workload workload = make_two_modules();
    workload.evaluation = nullptr;
    return workload;
  };
  EXPECT_THAT(complaint(without, ErrorKind::kInvalidArgument), HasSubstr("no evaluation data"));
  const auto other = [] {
    Workload workload = make_two_modules();
    const auto forward = workload.model.forward;
    workload.model.forward = [forward](const Batch& batch) {
      Losses losses = forward(batch);
      losses[0].value = losses[0].value * 2;
      return losses;
    };
    return workload;
  };
  EXPECT_THAT(complaint(other, ErrorKind::kInvalidArgument), HasSubstr("of another model"));
  const FileLock lock(path("run/following.lock"), std::chrono::milliseconds(0));
  EXPECT_THAT(complaint(make_two_modules, ErrorKind::kUnavailable), HasSubstr("another process"));
}

}  // namespace
}  // namespace trireme
