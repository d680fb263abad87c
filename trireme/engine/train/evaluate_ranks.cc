#include "trireme/engine/train/evaluate_ranks.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/data/range.h"
#include "trireme/engine/pipeline/mailbox.h"
#include "trireme/engine/pipeline/stage_worker.h"
#include "trireme/engine/pipeline/step_runner.h"
#include "trireme/engine/program/step_losses.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/engine/train/serial_session.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/matching_cuts.h"
#include "trireme/plan/schedule/check_crossings.h"
#include "trireme/plan/schedule/check_program.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/schedule/step_facts.h"

namespace trireme::train {
namespace {

/// Nothing is trained here.
class NoGradients : public program::GradientSink {
 public:
  void accept(int, const at::Tensor&) override {}
};

/// The session's stages, cut in the recording of the evaluation where they are cut in its own.
layout::Plan evaluation_plan(const RankSession& session, const graph::Graph& graph) {
  const auto cuts = layout::matching_cuts(session.recording().graph, session.plan(), graph);
  layout::Plan plan =
      layout::make_manual_plan(graph, graph::graph_sha256(graph), cuts, session.plan().batch);
  plan.roles = session.plan().roles;
  return plan;
}

schedule::StepProgram checked_program(const graph::Graph& graph, const layout::Plan& plan,
                                      int num_microbatches) {
  schedule::StepProgram program = schedule::make_evaluation_program(graph, plan, num_microbatches);
  const schedule::StepFacts facts = schedule::evaluation_facts(graph, plan, num_microbatches);
  schedule::check(program, schedule::forwards(facts.num_stages(), facts.num_microbatches), facts);
  schedule::check_crossings(program, graph, plan);
  return program;
}

/// Sums and weights of losses by global microbatch of a part of an evaluation, exchanged: the one
/// operation that its program has beside messages and forwards.
class LossExchange : public pipeline::Operations {
 public:
  /// num_microbatches   of all replicas.
  LossExchange(const collectives::World& world, collectives::Group& group, ErrorContext place,
               std::size_t num_losses, std::int64_t num_microbatches)
      : world_(world),
        group_(group),
        place_(std::move(place)),
        width_(2 * num_losses),
        words_(num_microbatches * width_) {}

  void put(std::int64_t microbatch, int loss, double sum, double weight) {
    const std::size_t word = microbatch * width_ + 2 * loss;
    words_[word] = std::bit_cast<std::uint64_t>(sum);
    words_[word + 1] = std::bit_cast<std::uint64_t>(weight);
  }

  void add_to(StepLosses& losses) const {
    for (std::size_t i = 0; i < words_.size(); i += 2) {
      LossTotal& loss = losses.losses[i % width_ / 2];
      loss.sum += std::bit_cast<double>(words_[i]);
      loss.weight += std::bit_cast<double>(words_[i + 1]);
    }
  }

  /// What the rank knows, just before it is exchanged.
  std::function<void()> collect;

  void run(const schedule::Operation& operation) override {
    TRIREME_CHECK(operation.kind == schedule::OperationKind::kExchange, "no other is written");
    collect();
    collectives::unite(group_, words_, world_.watch, place_);
  }
  std::vector<double> weigh() override { return {}; }
  void end_backward(int /*microbatch*/) override {}
  std::span<std::byte> tie_memory(const schedule::Channel& /*channel*/, int /*item*/) override {
    return {};
  }

 private:
  const collectives::World& world_;
  collectives::Group& group_;
  ErrorContext place_;
  std::size_t width_;
  std::vector<std::uint64_t> words_;
};

/// One rank's part of an evaluation.
class Evaluation {
 public:
  Evaluation(const collectives::World& world, const Workload& workload, const RankSession& session,
             const record::Recording& recording)
      : world_(world),
        workload_(workload),
        session_(session),
        recording_(recording),
        plan_(evaluation_plan(session, recording.graph)),
        group_(collectives::make_world_group(world, "evaluation")),
        sites_(recording, sink_),
        stage_(recording, plan_, session.stage(), sites_),
        worker_(recording, stage_, pipeline::StageWorker::Purpose::kEvaluate),
        weights_(recording, {stage_.weighed_losses().begin(), stage_.weighed_losses().end()}),
        reader_(workload.evaluation, workload.model),
        num_samples_(workload.evaluation->num_samples()) {}

  /// Sum and weight of each loss over all samples, on every rank.
  RankEvaluation run(std::int64_t microbatches_at_once) {
    const std::int64_t all =
        data::num_evaluation_microbatches(num_samples_, plan_.batch.microbatch);
    const std::int64_t most = microbatches_at_once * num_replicas();
    RankEvaluation result{program::empty_losses(recording_.graph), {}};
    for (std::int64_t begin = 0; begin < all; begin += most) {
      run(begin, static_cast<int>(std::min(most, all - begin)), result);
    }
    return result;
  }

 private:
  /// `num` microbatches from `begin` on, of all replicas.
  void run(std::int64_t begin, int num, RankEvaluation& result) {
    schedule::StepProgram program = checked_program(recording_.graph, plan_, num);
    const pipeline::StepInput input = input_of(begin, num);
    LossExchange exchange(world_, *group_,
                          {.rank = world_.rank(),
                           .operation = "losses of the evaluation",
                           .step = session_.next_step()},
                          recording_.graph.losses.size(), num);
    exchange.collect = [&] { collect(input, begin, exchange); };
    pipeline::Mailbox mailbox(program, world_.rank(), world_.endpoint, world_.watch);
    pipeline::StepRunner runner(program, world_.rank(), {{session_.stage(), &worker_}}, exchange,
                                mailbox);
    runner.run(input);
    exchange.add_to(result.losses);
    result.last_part = {"evaluation", input.step, std::move(program), runner.times(),
                        runner.begin()};
  }

  pipeline::StepInput input_of(std::int64_t begin, int num) {
    const int replicas = num_replicas(), replica = session_.replica();
    const int first = schedule::first_evaluated(num, replicas, replica);
    const int end = schedule::first_evaluated(num, replicas, replica + 1);
    pipeline::StepInput input{.step = session_.next_step(), .first_microbatch = begin + first};
    for (int m = first; m < end; ++m) input.num_samples.push_back(range(begin + m).size());
    input.read = [this, first = begin + first](int m) {
      Batch batch = read(first + m);
      if (weights_.reads_batch()) {
        weights_read_[m] = weights_.weights(batch, range(first + m).size());
      }
      return batch;
    };
    weights_read_.clear();
    return input;
  }

  /// Losses that were made here, and their weights.
  void collect(const pipeline::StepInput& input, std::int64_t begin, LossExchange& exchange) const {
    for (int m = 0; m < input.num_microbatches(); ++m) {
      const std::int64_t microbatch = input.first_microbatch + m;
      const std::vector<double> weights = weights_of(input, m);
      for (const int loss : stage_.losses()) {
        exchange.put(microbatch - begin, loss, worker_.loss_sums()[m][loss], weights[loss]);
      }
    }
  }

  std::vector<double> weights_of(const pipeline::StepInput& input, int m) const {
    if (const auto found = weights_read_.find(m); found != weights_read_.end())
      return found->second;
    const Batch batch = weights_.reads_batch() ? read(input.first_microbatch + m) : Batch();
    return weights_.weights(batch, input.num_samples[m]);
  }

  Batch read(std::int64_t microbatch) const {
    Batch batch = reader_.read(range(microbatch));
    set_step_scalars(batch, workload_.model, session_.next_step());
    return batch;
  }

  data::IndexRange range(std::int64_t microbatch) const {
    return data::evaluation_range(num_samples_, plan_.batch.microbatch, microbatch);
  }

  int num_replicas() const { return layout::train_role(plan_).mesh.data; }

  const collectives::World& world_;
  const Workload& workload_;
  const RankSession& session_;
  const record::Recording& recording_;
  layout::Plan plan_;
  std::unique_ptr<collectives::Group> group_;
  NoGradients sink_;
  program::SiteTable sites_;
  program::StageProgram stage_;
  pipeline::StageWorker worker_;
  program::WeightProgram weights_;
  BatchReader reader_;
  std::int64_t num_samples_;
  std::map<int, std::vector<double>> weights_read_;  ///< With the forward's batch, by microbatch.
};

}  // namespace

void check_evaluation(const RankSession& session, const Workload& workload,
                      const record::Recording& recording) {
  check_remainder(recording.graph, workload, session.plan().batch.microbatch);
  evaluation_plan(session, recording.graph);
}

RankEvaluation evaluate_ranks(const collectives::World& world, const Workload& workload,
                              const RankSession& session, const record::Recording& recording,
                              std::int64_t microbatches_at_once) {
  if (!workload.evaluation) {
    throw Error(ErrorKind::kInvalidArgument,
                "the workload has no evaluation data; set Workload::evaluation");
  }
  const record::ModeGuard in_mode(workload.model, graph::Mode::kEval);
  return Evaluation(world, workload, session, recording).run(microbatches_at_once);
}

}  // namespace trireme::train
