// What run.json says when: a run is done once its last evaluation is written.

#include <functional>

#include "tests/session/session_fixture.h"
#include "trireme/base/json.h"

namespace trireme {
namespace {

/// Tells when its first sample is read, each time.
class Watched : public data::Source {
 public:
  Watched(std::shared_ptr<const data::Source> source, std::function<void()> look)
      : source_(std::move(source)), look_(std::move(look)) {}

  std::int64_t num_samples() const override { return source_->num_samples(); }
  const std::vector<data::Field>& fields() const override { return source_->fields(); }
  std::string identity() const override { return source_->identity(); }
  void read(data::Sample sample, std::span<const std::span<std::byte>> to) const override {
    if (sample.index == 0) look_();
    source_->read(sample, to);
  }

 private:
  std::shared_ptr<const data::Source> source_;
  std::function<void()> look_;
};

class RunEnd : public SessionTest {
 protected:
  /// Whose evaluations call `look` as they begin.
  static MakeWorkload watched(const std::function<void()>& look) {
    return [look] {
      Workload workload = make_two_modules();
      workload.evaluation = std::make_shared<Watched>(workload.evaluation, look);
      return workload;
    };
  }

  /// Of the last start.
  Json last_segment() const {
    return Json::parse(text_of(path("run/run.json")))["segments"].back();
  }
  int num_evaluations() const {
    const std::string text = text_of(path("run/metrics.jsonl"));
    int count = 0;
    for (std::size_t at = 0; (at = text.find("\"evaluation\"", at)) != std::string::npos; ++at)
      ++count;
    return count;
  }
};

TEST_F(RunEnd, ItIsDoneOnceTheLastEvaluationIsWritten) {
  std::string ended;
  int evaluations_then = 0;
  const auto look = [&] {
    if (!std::filesystem::exists(path("run/run.json"))) return;
    ended = last_segment()["ended"];
    evaluations_then = num_evaluations();
  };
  Session(world_, watched(look), kept(4)).run();
  EXPECT_EQ(ended, "unknown");
  EXPECT_EQ(last_segment()["ended"], "done");
  EXPECT_EQ(num_evaluations(), evaluations_then + 1);
  EXPECT_FALSE(last_segment()["timeline"].get<std::string>().empty());
}

/// As a kill behind the last step: the next start, which has no step to do, evaluates and says that it is done.
TEST_F(RunEnd, ARunThatLacksItsLastEvaluationIsEndedByTheNextStart) {
  int num_looks = 0;
  bool fails = false;
  const auto look = [&] {
    ++num_looks;
    if (fails) throw Error(ErrorKind::kIo, "the disk is gone");
  };
  {
    SessionOptions wanted = kept(4);
    wanted.callbacks.on_step = [&](const StepReport& report) { fails = report.step == 3; };
    Session session(world_, watched(look), wanted);
    EXPECT_THROW(session.run(), Error);
  }
  EXPECT_EQ(last_segment()["ended"], "unknown");
  const int before = num_evaluations();
  fails = false;
  World world;  // the failure has ended the other
  {
    Session session(world, watched(look), kept(4));
    EXPECT_EQ(session.resumed_from(), 4);
    EXPECT_TRUE(session.run().evaluation.has_value());
  }
  const Json segment = last_segment();
  EXPECT_EQ(segment["ended"], "done");
  EXPECT_EQ(segment["end_step"], 4);
  EXPECT_EQ(num_evaluations(), before + 1);
  const std::string ended = text_of(path("run/run.json"));
  Session(world, watched(look), kept(4)).run();
  EXPECT_EQ(text_of(path("run/run.json")), ended) << "it had ended";
}

/// A stop in the last step or in the last evaluation leaves nothing to resume but that evaluation.
TEST_F(RunEnd, AStopAskedInTheLastEvaluationLeavesItToTheNextStart) {
  for (const bool in_step : {false, true}) {
    SCOPED_TRACE(in_step);
    std::filesystem::remove_all(path("run"));
    Session* running = nullptr;
    bool is_last = false;
    const auto look = [&] {
      if (is_last && running != nullptr) running->request_stop();
    };
    SessionOptions wanted = kept(4);
    wanted.callbacks.on_step = [&](const StepReport& report) {
      is_last = report.step == 3;
      if (is_last && in_step) running->request_stop();
    };
    int before = 0;
    {
      Session session(world_, watched(look), wanted);
      running = &session;
      const SessionEnd end = session.run();
      running = nullptr;
      before = num_evaluations();
      EXPECT_EQ(end.steps_done, 4);
      EXPECT_FALSE(end.evaluation.has_value());
    }
    EXPECT_EQ(last_segment()["ended"], "unknown");
    {
      Session session(world_, watched(look), kept(4));
      EXPECT_EQ(session.resumed_from(), 4);
      EXPECT_TRUE(session.run().evaluation.has_value());
    }
    EXPECT_EQ(last_segment()["ended"], "done");
    EXPECT_EQ(last_segment()["end_step"], 4);
    EXPECT_EQ(num_evaluations(), before + 1);
  }
}

/// Where nobody has said how far it goes, the run has stopped where the stop was asked for.
TEST_F(RunEnd, AStopAskedInTheEvaluationOfAnEndlessRunStopsIt) {
  Session* running = nullptr;
  const auto look = [&] {
    if (running != nullptr) running->request_stop();
  };
  SessionOptions wanted = kept(4);
  wanted.num_steps.reset();
  Session session(world_, watched(look), wanted);
  session.step();
  running = &session;
  const SessionEnd end = session.finish();
  running = nullptr;
  EXPECT_FALSE(end.evaluation.has_value());
  EXPECT_EQ(end.stopped_by, "a call");
  EXPECT_EQ(last_segment()["ended"], "stopped");
  EXPECT_EQ(last_segment()["stopped_at"], 1);
}

}  // namespace
}  // namespace trireme
