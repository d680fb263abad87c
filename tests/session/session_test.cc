#include "trireme/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/session/session_fixture.h"
#include "trireme/base/json.h"
#include "trireme/error.h"
#include "trireme/plan/layout/plan.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST_F(SessionTest, ALoopOfStepsIsARun) {
  const std::string expected = undisturbed(7);
  Session session(world_, make_two_modules, options(7));
  while (session.next_step() < 7) {
    const StepReport report = session.step();
    EXPECT_EQ(report.step + 1, session.next_step());
    EXPECT_GT(report.losses.total(), 0);
  }
  const SessionEnd end = session.finish();
  session.save_weights(path("loop"));
  EXPECT_EQ(text_of(path("loop")), expected);
  EXPECT_EQ(end.steps_done, 7);
  EXPECT_GT(end.measured.median_step_ms, 0);
  EXPECT_TRUE(end.evaluation.has_value());
}

TEST_F(SessionTest, SerialStagesGiveTheSameBits) {
  const std::string expected = undisturbed(5);
  SessionOptions wanted = options(5);
  wanted.serial = true;
  wanted.planning.stages = 2;
  Session session(world_, make_two_modules, wanted);
  EXPECT_EQ(session.plan().num_stages(), 2);
  session.run();
  session.save_weights(path("serial"));
  EXPECT_EQ(text_of(path("serial")), expected);
}

TEST_F(SessionTest, ModulesKeepTheirNames) {
  Session session(world_, make_two_modules, options(1));
  session.run();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : session.weights()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("encoder.0.bias", "encoder.0.weight", "head.bias", "head.weight"));
}

TEST_F(SessionTest, ARunThatIsStoppedGoesOnWithTheSameBits) {
  const std::string expected = undisturbed(8);
  std::vector<std::int64_t> saved;
  {
    SessionOptions wanted = kept(8);
    Session* running = nullptr;
    wanted.callbacks.on_step = [&](const StepReport& step) {
      if (step.step == 4) running->request_stop();
    };
    wanted.callbacks.on_checkpoint = [&](std::int64_t step, const std::string&) {
      saved.push_back(step);
    };
    Session session(world_, make_two_modules, wanted);
    running = &session;
    const SessionEnd end = session.run();
    EXPECT_EQ(end.steps_done, 5);
    EXPECT_EQ(end.stopped_by, "a call");
    EXPECT_FALSE(end.evaluation.has_value());
  }
  EXPECT_THAT(saved, ElementsAre(3, 5));
  Session session(world_, make_two_modules, kept(8));
  EXPECT_EQ(session.resumed_from(), 5);
  session.run();
  session.save_weights(path("resumed"));
  EXPECT_EQ(text_of(path("resumed")), expected);
  EXPECT_THAT(text_of(path("run/metrics.jsonl")), HasSubstr("\"evaluation\""));
}

TEST_F(SessionTest, LinesOfMetricsSayWhenTheyWereWritten) {
  const auto now = [] {
    const auto time = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  };
  std::int64_t earliest = now();
  Session(world_, make_two_modules, kept(3)).run();
  std::istringstream lines(text_of(path("run/metrics.jsonl")));
  int num_evaluations = 0;
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    const auto time = json["time_ms"].get<std::int64_t>();
    EXPECT_GE(time, earliest) << line;
    EXPECT_LE(time, now()) << line;
    earliest = time;
    EXPECT_EQ(json.contains("evaluation_ms"), json.contains("evaluation")) << line;
    if (!json.contains("evaluation")) continue;
    ++num_evaluations;
    EXPECT_GT(json["evaluation_ms"].get<double>(), 0) << line;
  }
  EXPECT_GT(num_evaluations, 0);
}

TEST_F(SessionTest, ResumesFromACheckpointElsewhere) {
  const std::string expected = undisturbed(6);
  std::string checkpoint;
  {
    Session session(world_, make_two_modules, kept(4));
    checkpoint = session.run().checkpoint;
  }
  Session session(world_, make_two_modules, options(6));
  session.resume(checkpoint);
  EXPECT_EQ(session.next_step(), 4);
  session.run();
  session.save_weights(path("resumed"));
  EXPECT_EQ(text_of(path("resumed")), expected);
}

TEST_F(SessionTest, TellsOfEvaluations) {
  SessionOptions wanted = kept(4);
  wanted.run.evaluate_every = 2;
  std::vector<std::int64_t> steps;
  wanted.callbacks.on_evaluation = [&](std::int64_t step, const StepLosses&) {
    steps.push_back(step);
  };
  Session session(world_, make_two_modules, wanted);
  const SessionEnd end = session.run();
  EXPECT_THAT(steps, ElementsAre(0, 2));  // the last is the end's
  EXPECT_GT(end.evaluation->total(), 0);
}

// What was learnt at step 3 changed with the steps after it.
TEST_F(SessionTest, WeightsStayAsTheyWere) {
  Session session(world_, make_two_modules, options(6));
  for (int i = 0; i < 3; ++i) session.step();
  const auto early = session.weights();
  session.save_weights(path("early"));
  const at::Tensor copy = early.at("head.weight").clone();
  session.run();
  EXPECT_TRUE(at::equal(early.at("head.weight"), copy));
  EXPECT_FALSE(at::equal(session.weights().at("head.weight"), copy));
  Session again(world_, make_two_modules, options(3));
  again.run();
  again.save_weights(path("three"));
  EXPECT_EQ(text_of(path("early")), text_of(path("three")));
}

// run.json said 100 steps, the default, and a run of 400 did not resume.
TEST_F(SessionTest, ALoopOfItsOwnIsKeptAsFarAsItGoes) {
  const auto train_to = [this](std::int64_t end) {
    SessionOptions wanted = kept(0);
    wanted.num_steps.reset();
    Session session(world_, make_two_modules, wanted);
    while (session.next_step() < end) session.step();
    session.finish();
    return session.resumed_from();
  };
  EXPECT_EQ(train_to(4), std::nullopt);
  EXPECT_THAT(text_of(path("run/run.json")), HasSubstr("\"end_step\": 4"));
  EXPECT_EQ(train_to(7), 4);
  EXPECT_THAT(text_of(path("run/run.json")), HasSubstr("\"end_step\": 7"));
  EXPECT_THAT(text_of(path("run/run.json")), Not(HasSubstr("stopped")));
}

TEST_F(SessionTest, ALoopOfItsOwnHearsOfRequests) {
  SessionOptions wanted = kept(0);
  wanted.num_steps.reset();
  std::vector<std::int64_t> saved;
  wanted.callbacks.on_checkpoint = [&](std::int64_t step, const std::string&) {
    saved.push_back(step);
  };
  Session session(world_, make_two_modules, wanted);
  session.step();
  session.request_save();
  session.step();
  EXPECT_FALSE(session.stops());
  session.request_stop();
  session.step();
  EXPECT_TRUE(session.stops());
  EXPECT_THAT(saved, ElementsAre(2, 3));
  EXPECT_EQ(session.finish().stopped_by, "a call");
}

// A checkpoint that was asked for at a step where one was due anyway ended the run: there was one already.
TEST_F(SessionTest, ACheckpointIsAskedForWhereOneIsDue) {
  for (const auto writes : {CheckpointWrites::kBeside, CheckpointWrites::kWait}) {
    SessionOptions options = kept(7);
    options.run.folder = path(writes == CheckpointWrites::kBeside ? "beside" : "wait");
    options.run.checkpoint_writes = writes;
    Session* running = nullptr;
    options.callbacks.on_step = [&](const StepReport&) { running->request_save(); };
    std::vector<std::int64_t> saved;
    options.callbacks.on_checkpoint = [&](std::int64_t steps, const std::string&) {
      saved.push_back(steps);
    };
    Session session(world_, make_two_modules, options);
    running = &session;
    session.run();
    EXPECT_THAT(saved, testing::ElementsAre(1, 2, 3, 4, 5, 6, 7));
  }
}

TEST_F(SessionTest, ATimelineIsOfTheLastStep) {
  Session session(world_, make_two_modules, options(3));
  EXPECT_THAT(refusal([&] { session.save_timeline(path("none")); }), HasSubstr("has done none"));
  session.step();
  session.save_timeline(path("first"));
  session.step();
  session.save_timeline(path("second"));
  EXPECT_THAT(text_of(path("first")), HasSubstr("\"step\": 0"));
  EXPECT_THAT(text_of(path("second")), HasSubstr("\"step\": 1"));
  EXPECT_THAT(text_of(path("second")), testing::Not(HasSubstr("\"evaluation\"")));
  session.evaluate();
  session.save_timeline(path("third"));
  EXPECT_THAT(text_of(path("third")), HasSubstr("\"name\": \"evaluation\""));
}

TEST_F(SessionTest, SaysWhatCannotBe) {
  Session session(world_, make_two_modules, options(2));
  EXPECT_THAT(refusal([&] { session.save(); }), HasSubstr("need a folder"));
  EXPECT_THAT(refusal([&] { session.examples(); }), HasSubstr("call `finish`"));
  session.run();
  EXPECT_THAT(refusal([&] { session.step(); }), HasSubstr("has ended"));
  EXPECT_THAT(refusal([&] { session.resume("nowhere"); }), HasSubstr("has ended"));
  SessionOptions wanted = kept(2);
  wanted.serial = true;
  EXPECT_THAT(refusal([&] { Session(world_, make_two_modules, wanted); }), HasSubstr("--serial"));
  World other;  // the refusal has ended this one
  wanted = kept(2);
  wanted.run.keep_last = 0;
  EXPECT_THAT(refusal([&] { Session(other, make_two_modules, wanted); }), HasSubstr("at least 1"));
  World third;
  wanted = options(2);
  wanted.training.evaluate_average = true;
  EXPECT_THAT(refusal([&] { Session(third, make_two_modules, wanted); }),
              HasSubstr("wants averages"));
}

TEST_F(SessionTest, NoEvaluationDataIsSaidAndNothingIsLost) {
  const auto make = [] {
    Workload workload = make_two_modules();
    workload.evaluation = nullptr;
    return workload;
  };
  Session session(world_, make, options(2));
  EXPECT_THAT(refusal([&] { session.evaluate(); }), HasSubstr("no evaluation data"));
  EXPECT_EQ(session.run().steps_done, 2);
}

TEST_F(SessionTest, PlansAreValues) {
  const Graph graph = record_graph(make_two_modules, 4);
  graph.save(path("graph.json"));
  EXPECT_EQ(Graph::load(path("graph.json")).sha256(), graph.sha256());
  EXPECT_THAT(graph.parameter_names(),
              ElementsAre("encoder.0.weight", "encoder.0.bias", "head.weight", "head.bias"));
  EXPECT_THAT(graph.random_nodes(), testing::SizeIs(1));  // the dropout
  EXPECT_THAT(graph.buffer_names(), testing::IsEmpty());
  PlanOptions wanted;
  wanted.batch = {.global_batch = 16, .microbatch = 4, .lanes = 2};
  wanted.stages = 2;
  wanted.replicas = 2;
  const Plan plan = make_plan(graph, wanted);
  EXPECT_EQ(plan.num_ranks(), 4);
  EXPECT_EQ(plan.stage_begins().size(), 2U);
  EXPECT_EQ(plan.graph_sha256(), graph.sha256());
  EXPECT_FALSE(plan.prediction().has_value());
  EXPECT_THAT(plan.show(graph), HasSubstr("interleaved"));
  wanted.offload = Offload::kAuto;
  EXPECT_THAT(refusal([&] { make_plan(graph, wanted); }), HasSubstr("wants costs to decide by"));
  plan.save(path("plan.json"));
  EXPECT_EQ(Plan::load(path("plan.json")).batch(), plan.batch());
}

TEST_F(SessionTest, RanksArePlacedByReplicaOrByStage) {
  const Graph graph = record_graph(make_two_modules, 2);
  PlanOptions options{
      .batch = {.global_batch = 8, .microbatch = 2, .lanes = 2}, .stages = 2, .replicas = 2};
  EXPECT_THAT(make_plan(graph, options).value().roles[0].placement, ElementsAre(0, 1, 2, 3));
  options.placement = Placement::kCluster;
  EXPECT_THAT(make_plan(graph, options).value().roles[0].placement, ElementsAre(0, 2, 1, 3));
}

TEST_F(SessionTest, AGraphSaysWhereParametersAreUsedFirst) {
  const Graph graph = record_graph(make_two_modules, 2);
  const std::vector<std::string> names = graph.parameter_names();
  const std::vector<int> uses = graph.first_uses();
  ASSERT_EQ(uses.size(), names.size());
  int last = -1;
  for (const int use : uses) {  // encoder before head, as forward goes
    EXPECT_GE(use, last);
    last = use;
  }
  EXPECT_LT(last, static_cast<int>(graph.node_names().size()));
}

/// A model whose first weight is used twice, its last never, with a buffer.
Workload make_tied() {
  const auto weight = torch::randn({4, 4}).set_requires_grad(true);
  const auto unused = torch::randn({4}).set_requires_grad(true);
  const auto shift = torch::randn({4});
  Model model;
  model.parameters = {{"weight", weight}, {"unused", unused}};
  model.buffers = {{"shift", shift}};
  model.forward = [=](const Batch& batch) -> Losses {
    const auto y = (batch["x"].matmul(weight) + shift).tanh().matmul(weight);
    return {mean_loss(y.square().mean())};
  };
  return {std::move(model), tensor_source({{"x", torch::randn({16, 4})}}), nullptr};
}

TEST_F(SessionTest, AGraphSaysWhatIsSpecialInIt) {
  const Graph graph = record_graph(make_tied, 2);
  EXPECT_THAT(graph.tied_parameters(), ElementsAre("weight"));
  EXPECT_THAT(graph.unused_parameters(), ElementsAre("unused"));
  EXPECT_THAT(graph.buffer_names(), ElementsAre("shift"));
  EXPECT_THAT(graph.random_nodes(), ElementsAre());
}

TEST_F(SessionTest, VerifiesStagesInOneProcess) {
  VerifyOptions wanted{.num_steps = 2, .optimizer = {.name = "sgd"}};
  wanted.planning.batch = {.global_batch = 8, .microbatch = 2, .lanes = 1};
  wanted.planning.stages = 2;
  const Verification result = verify_training(world_, make_two_modules, wanted);
  EXPECT_TRUE(result.passes());
  EXPECT_EQ(result.plan.num_stages(), 2);
  ASSERT_EQ(result.comparisons.size(), 2U);
  EXPECT_EQ(result.comparisons[0].against, "uncut");
  EXPECT_TRUE(result.comparisons[0].is_bitwise);
  EXPECT_EQ(result.comparisons[1].against, "plain loop");
  wanted.plan = make_plan(record_graph(make_tied, 2), wanted.planning);
  EXPECT_THAT(refusal([&] { verify_training(world_, make_two_modules, wanted); }),
              HasSubstr("the plan: "));
}

TEST_F(SessionTest, MeasuresPlansAndSimulates) {
  const Measurement measured =
      measure_model(world_, make_two_modules, {.microbatch = 2, .files = true});
  const Graph& graph = measured.graph;
  EXPECT_EQ(graph.sha256(), record_graph(make_two_modules, 2).sha256());
  EXPECT_EQ(measured.profile.graph_sha256(), graph.sha256());
  EXPECT_GT(measured.profile.num_distinct_nodes(), 0);
  EXPECT_GT(measured.profile.forward_ms(), 0);
  EXPECT_GT(measured.profile.backward_ms(), 0);
  EXPECT_EQ(measured.topology.num_ranks(), 1);
  EXPECT_GT(measured.topology.memory_bytes(0), 0);
  PlanOptions wanted;
  wanted.batch = {.global_batch = 8, .microbatch = 2, .lanes = 1};
  const Decision decision = make_plan(graph, measured.profile, measured.topology, wanted);
  ASSERT_TRUE(decision.plan.prediction().has_value());
  const SimulatedStep step =
      simulate_step(decision.plan, graph, measured.profile, measured.topology);
  EXPECT_NEAR(step.step_ms, decision.plan.prediction()->step_ms, 1e-9);
  EXPECT_THAT(step.text, HasSubstr("order of microbatches"));
  wanted.offload = Offload::kAll;
  EXPECT_THAT(make_plan(graph, measured.profile, measured.topology, wanted).text,
              HasSubstr("in files between F and B on stages 0"));
}

TEST_F(SessionTest, ReadersLeaveSomebodyToTrain) {
  const auto refused = [](SessionOptions wanted, int readers) {
    World world;
    wanted.reader_ranks = readers;
    return refusal([&] { Session(world, make_two_modules, wanted); });
  };
  EXPECT_THAT(refused(options(2), -1), HasSubstr("reader_ranks is -1 in a world of 1"));
  EXPECT_THAT(refused(options(2), 1), HasSubstr("give it 0 to 0"));
  SessionOptions serial = options(2);
  serial.serial = true;
  EXPECT_THAT(refused(serial, 1), HasSubstr("--reader-ranks"));
}

TEST_F(SessionTest, APlanOfAnotherModelIsRefused) {
  const Graph graph = record_graph(
      [] {
        const auto net = std::make_shared<torch::nn::LinearImpl>(4, 2);
        const auto x = torch::randn({8, 4});
        return Workload{make_model(net,
                                   [net](const Batch& batch) {
                                     return net->forward(batch["x"]).square().mean();
                                   }),
                        tensor_source({{"x", x}}), nullptr};
      },
      2);
  make_plan(graph, {.batch = {.global_batch = 8, .microbatch = 2, .lanes = 1}})
      .save(path("plan.json"));
  SessionOptions wanted = options(2);
  wanted.plan = Plan::load(path("plan.json"));
  EXPECT_THAT(refusal([&] { Session(world_, make_two_modules, wanted); }), HasSubstr("plan.json"));
}

}  // namespace
}  // namespace trireme
