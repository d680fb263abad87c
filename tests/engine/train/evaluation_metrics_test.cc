#include "trireme/engine/train/evaluation_metrics.h"

#include <gmock/gmock.h>

#include <limits>
#include <mutex>

#include "tests/base/error_of.h"
#include "tests/engine/train/layouts.h"
#include "trireme/engine/train/evaluate_ranks.h"
#include "trireme/engine/train/serial_session.h"

namespace trireme::train {
namespace {

using testing::HasSubstr;
using Rows = std::map<std::string, std::vector<at::Tensor>>;

/// Notes all outputs of an evaluation.
class NotingMetric : public Metric {
 public:
  explicit NotingMetric(Rows& rows) : rows_(rows) { rows_.clear(); }

  void add(const Batch& outputs) override {
    for (const auto& [name, tensor] : outputs.tensors()) {
      EXPECT_TRUE(tensor.is_contiguous() && !tensor.requires_grad()) << name;
      rows_[name].push_back(tensor);
    }
  }
  std::vector<std::pair<std::string, double>> results() override {
    return {{"most", at::cat(rows_.at("scores")).max().item<double>()},
            {"rows", static_cast<double>(at::cat(rows_.at("kind")).size(0))}};
  }

 private:
  Rows& rows_;
};

std::function<std::vector<std::unique_ptr<Metric>>()> noting(Rows& rows) {
  return [&rows] {
    std::vector<std::unique_ptr<Metric>> metrics;
    metrics.push_back(std::make_unique<NotingMetric>(rows));
    return metrics;
  };
}

/// Outputs of the first and of the last part of the model, of another dtype, and a field; in train mode too.
struct ScoringNet : torch::nn::Module {
  torch::nn::Linear first{3, 8}, middle{8, 8}, last{8, 4};

  ScoringNet() {
    register_module("first", first);
    register_module("middle", middle);
    register_module("last", last);
  }
  /// Operators that take no field of the batch: the last stage, which gives the fields among the outputs.
  static at::Tensor scaled(at::Tensor loss) {
    for (int i = 0; i < 6; ++i) loss = loss * 2;
    return loss;
  }
  Losses forward(const Batch& batch) {
    const auto hidden = first(batch["x"]);
    const auto scores = last(torch::relu(middle(torch::relu(hidden))));
    return {output(hidden.slice(1, 2, 5), "hidden"),
            mean_loss(scaled(torch::cross_entropy_loss(scores, batch["kind"]))),
            output(scores, "scores"), output(scores.argmax(1), "best"),
            output(batch["kind"], "kind")};
  }
};

MakeWorkload scoring(Rows& rows) {
  return [&rows] {
    const auto samples = [](std::int64_t num) {
      return tensor_source({{"x", torch::arange(num * 3.0).reshape({num, 3}).sin()},
                            {"kind", torch::arange(num) % 4}});
    };
    return Workload{make_model(std::make_shared<ScoringNet>()), samples(48), samples(15),
                    noting(rows)};
  };
}

record::Recording recorded_for(graph::Mode mode, const Workload& workload) {
  return record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                        mode);
}

StepLosses evaluated_serially(Rows& rows) {
  const Workload workload = construct(scoring(rows), 3);
  return evaluate(workload, recorded_for(graph::Mode::kEval, workload), /*microbatch=*/2,
                  /*step=*/0);
}

/// The outputs as the module itself makes them.
Rows plain_rows(Rows& unused) {
  const Workload workload = construct(scoring(unused), 3);
  const at::NoGradGuard guard;
  workload.model.set_training(false);
  const BatchReader reader(workload.evaluation, workload.model);
  Rows rows;
  for (std::int64_t begin = 0; begin < 15; begin += 2) {
    for (const Loss& loss :
         workload.model.forward(reader.read({begin, std::min<std::int64_t>(begin + 2, 15)}))) {
      if (loss.is_output) rows[loss.name].push_back(loss.value);
    }
  }
  return rows;
}

void expect_equal(const Rows& actual, const Rows& expected) {
  ASSERT_EQ(actual.size(), 4U);
  for (const auto& [name, tensors] : expected) {
    EXPECT_TRUE(at::equal(at::cat(actual.at(name)), at::cat(tensors))) << name;
  }
}

TEST(EvaluationMetrics, SeeWhatTheModelMakesOfEachSampleInOrder) {
  Rows rows, unused;
  const StepLosses losses = evaluated_serially(rows);
  const Rows expected = plain_rows(unused);
  expect_equal(rows, expected);
  ASSERT_EQ(losses.losses.size(), 3U);
  EXPECT_EQ(losses.losses[1].name, "most");
  EXPECT_EQ(losses.losses[1].mean(), at::cat(expected.at("scores")).max().item<double>());
  EXPECT_EQ(losses.losses[2].mean(), 15);
  EXPECT_EQ(losses.total(), losses.losses[0].mean()) << "results are not part of the loss";
}

struct RankMetrics {
  std::vector<StepLosses> losses;  ///< By rank.
  Rows rows;                       ///< On the first.
};

RankMetrics evaluated_by_ranks(const Layout& layout, std::int64_t most_at_once) {
  RankMetrics found{std::vector<StepLosses>(layout.num_ranks()), {}};
  std::vector<Rows> rows(layout.num_ranks());
  run_ranks(layout.num_ranks(), [&](const collectives::World& world) {
    const Workload workload = construct(scoring(rows[world.rank()]), 3);
    const auto evaluation = recorded_for(graph::Mode::kEval, workload);
    workload.model.set_training(true);
    const layout::Plan plan = plan_of(layout, scoring(rows[world.rank()]));
    const auto recorded = recorded_for(graph::Mode::kTrain, workload);
    EXPECT_TRUE(recorded.graph.outputs.empty()) << "training leaves them out";
    RankSession session(world, workload, recorded, plan, {.seed = 3});
    check_evaluation(session, workload, evaluation);
    found.losses[world.rank()] =
        evaluate_ranks(world, workload, session, evaluation, {.most_at_once = most_at_once}).losses;
    session.step();  // nothing of the evaluation is left on the way
  });
  found.rows = std::move(rows[0]);
  return found;
}

TEST(EvaluationMetrics, AreThoseOfOneProcessInEveryLayout) {
  Rows expected;
  const StepLosses losses = evaluated_serially(expected);
  for (const auto& [layout, most_at_once] :
       {std::pair{Layout{.stages = 3}, 256},
        {Layout{.replicas = 3, .lanes = 6}, 2},
        {Layout{.stages = 2, .replicas = 2}, 1},
        {Layout{.stages = 4, .replicas = 2, .schedule = "interleaved", .stages_per_rank = 2}, 3}}) {
    SCOPED_TRACE(testing::PrintToString(layout));
    const RankMetrics found = evaluated_by_ranks(layout, most_at_once);
    expect_equal(found.rows, expected);
    for (const StepLosses& rank : found.losses) {
      ASSERT_EQ(rank.losses.size(), losses.losses.size());
      for (std::size_t i = 0; i < losses.losses.size(); ++i) {
        EXPECT_EQ(rank.losses[i].name, losses.losses[i].name);
        EXPECT_EQ(rank.losses[i].mean(), losses.losses[i].mean());
      }
    }
  }
}

/// Fails in `add` or has one bad result.
struct BadMetric : Metric {
  std::string name;
  double value = 0;
  void add(const Batch&) override {
    if (name.empty()) throw std::runtime_error("no such label");
  }
  std::vector<std::pair<std::string, double>> results() override { return {{name, value}}; }
};

std::function<std::vector<std::unique_ptr<Metric>>()> bad(const std::string& name, double value) {
  return [name, value] {
    std::vector<std::unique_ptr<Metric>> metrics;
    metrics.push_back(std::make_unique<BadMetric>());
    static_cast<BadMetric&>(*metrics.back()).name = name;
    static_cast<BadMetric&>(*metrics.back()).value = value;
    return metrics;
  };
}

TEST(EvaluationMetrics, WhatIsWrongWithOneIsSaidOnAllRanks) {
  const auto message = [](const std::string& name, double value) {
    Rows unused;
    Workload workload = construct(scoring(unused), 3);
    workload.metrics = bad(name, value);
    const auto evaluation = recorded_for(graph::Mode::kEval, workload);
    return test::error_of([&] { evaluate(workload, evaluation, 2, 0); }).message();
  };
  EXPECT_THAT(message("loss", 1),
              HasSubstr("two losses or metrics of the evaluation are called 'loss'"));
  EXPECT_THAT(message("AUC", std::numeric_limits<double>::quiet_NaN()),
              HasSubstr("the metric 'AUC' of the evaluation is nan"));
  int num_told = 0;
  std::mutex mutex;
  EXPECT_THROW(run_ranks(2,
                         [&](const collectives::World& world) {
                           Rows unused;
                           Workload workload = construct(scoring(unused), 3);
                           workload.metrics = bad("", 0);
                           const auto evaluation = recorded_for(graph::Mode::kEval, workload);
                           workload.model.set_training(true);
                           const layout::Plan plan = plan_of({.stages = 2}, scoring(unused));
                           const auto recorded = recorded_for(graph::Mode::kTrain, workload);
                           const RankSession session(world, workload, recorded, plan, {.seed = 3});
                           const std::string text =
                               test::error_of([&] {
                                 evaluate_ranks(world, workload, session, evaluation);
                               }).message();
                           EXPECT_THAT(text, HasSubstr("no such label"));
                           const std::scoped_lock lock(mutex);
                           if (++num_told == 2) throw std::runtime_error("both were told");
                         }),
               std::runtime_error);
}

TEST(EvaluationMetrics, MisuseIsNamed) {
  Rows unused;
  Workload workload = construct(scoring(unused), 3);
  const auto message = [&](Model model) {
    workload.model = std::move(model);
    return test::error_of([&] {
             check_evaluation_data(recorded_for(graph::Mode::kEval, workload).graph, workload, 2);
           })
        .message();
  };
  const auto with = [&](const auto& results) {
    const auto net = std::make_shared<ScoringNet>();
    return message(make_model(net, [net, results](const Batch& batch) -> Losses {
      Losses all = {mean_loss(net->first(batch["x"]).mean())};
      for (Loss& one : results(batch)) all.push_back(one);
      return all;
    }));
  };
  EXPECT_THAT(with([](const Batch&) { return Losses(); }), HasSubstr("returns no output"));
  EXPECT_THAT(with([](const Batch& b) { return Losses{output(b["x"].sum(), "s")}; }),
              HasSubstr("output 's' is a 0-dim tensor"));
  EXPECT_THAT(with([](const Batch& b) { return Losses{output(b["x"].sum(0), "s")}; }),
              HasSubstr("expected one row a sample"));
  EXPECT_THAT(with([](const Batch&) { return Losses{output(at::Tensor(), "s")}; }),
              HasSubstr("output 's' was not made by a recorded operator"));
  EXPECT_THAT(
      with([](const Batch& b) { return Losses{output(b["x"] + 1, "s"), output(b["x"] + 2, "s")}; }),
      HasSubstr("its name is taken"));
  EXPECT_THAT(with([](const Batch& b) {
                b["kind"].add_(1);
                return Losses{output(b["kind"], "s")};
              }),
              HasSubstr("that a node writes to"));
}

}  // namespace
}  // namespace trireme::train
