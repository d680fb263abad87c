#include "trireme/engine/train/evaluate_ranks.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/data/range.h"
#include "trireme/engine/pipeline/mailbox.h"
#include "trireme/engine/pipeline/stage_worker.h"
#include "trireme/engine/pipeline/step_runner.h"
#include "trireme/engine/program/step_losses.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/engine/train/evaluation_metrics.h"
#include "trireme/engine/train/reader_threads.h"
#include "trireme/engine/train/serial_session.h"
#include "trireme/engine/train/telling_others.h"
#include "trireme/error.h"
#include "trireme/plan/layout/matching_cuts.h"
#include "trireme/plan/schedule/check_crossings.h"
#include "trireme/plan/schedule/check_program.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/schedule/step_facts.h"

namespace trireme::train {
namespace {

constexpr std::int64_t kFirstPart = 16;  // of microbatches of a replica, where it may be stopped

/// Nothing is trained here.
class NoGradients : public program::GradientSink {
 public:
  void accept(int, const at::Tensor&) override {}
};

/// The session's stages, cut in the recording of the evaluation where they are cut in its own.
layout::Plan evaluation_plan(const RankSession& session, const graph::Graph& graph) {
  return layout::matching_plan(session.recording().graph, session.plan(), graph);
}

schedule::StepProgram checked_program(const graph::Graph& graph, const layout::Plan& plan,
                                      int num_microbatches,
                                      const schedule::ShardedBuckets& sharded) {
  schedule::StepProgram program =
      schedule::make_evaluation_program(graph, plan, num_microbatches, sharded);
  const schedule::StepFacts facts =
      schedule::evaluation_facts(graph, plan, num_microbatches, sharded);
  schedule::check(program, schedule::forwards(facts.positions, facts.num_microbatches, facts.round),
                  facts);
  schedule::check_crossings(program, graph, plan, num_microbatches);
  return program;
}

/// Losses that a rank makes and that have a weight.
std::set<int> weighed_here(const graph::Graph& graph, const RankStages& stages) {
  std::set<int> losses;
  for (const int loss : stages.losses()) {
    if (graph.losses[loss].weight) losses.insert(loss);
  }
  return losses;
}

/// As the session's stages run it.
record::Recording matching_recording(record::Recording recording, const RankSession& session) {
  recording.graph =
      layout::matching_graph(session.recording().graph, session.plan(), recording.graph);
  return recording;
}

/// What one rank does in an evaluation beside messages and forwards: sums and weights of losses by
/// microbatch, exchanged at the end of each part.
class Evaluation : public pipeline::Operations {
 public:
  Evaluation(const collectives::World& world, const Workload& workload, const RankSession& session,
             const record::Recording& recording)
      : world_(world),
        workload_(workload),
        session_(session),
        recording_(recording),
        plan_(evaluation_plan(session, recording.graph)),
        sharded_(schedule::sharded_by_stage(session.plan(), session.store().map())),
        group_(collectives::make_world_group(world, "evaluation")),
        sites_(recording, sink_),
        stages_(recording, plan_, session.stages(), sites_,
                {.purpose = pipeline::StageWorker::Purpose::kEvaluate}),
        workers_(stages_.workers()),
        weights_(recording, weighed_here(recording.graph, stages_)),
        reader_(workload.evaluation, workload.model,
                kernels::on_threads(threads_at_once(session.options().reader_threads,
                                                    cores_of_rank(num_local_ranks(world))))),
        num_samples_(workload.evaluation->num_samples()) {
    if (workload.metrics) outputs_.emplace(world, workload, recording.graph, plan_);
  }

  /// Sum and weight of each loss over all samples, and all metrics, on every rank.
  RankEvaluation run(const EvaluationOptions& options) {
    const std::int64_t all =
        data::num_evaluation_microbatches(num_samples_, plan_.batch.microbatch);
    RankEvaluation result{program::empty_losses(recording_.graph), {}, {}};
    schedule::StepProgram program;
    std::int64_t at_once =
        options.stops ? std::min(kFirstPart, options.most_at_once) : options.most_at_once;
    int num_of_program = 0;
    for (std::int64_t begin = 0; begin < all; begin += num_of_program) {
      const int num = static_cast<int>(std::min(at_once * num_replicas(), all - begin));
      if (num != num_of_program) program = checked_program(recording_.graph, plan_, num, sharded_);
      num_of_program = num;
      const auto start = std::chrono::steady_clock::now();
      result.last_part = run(program, begin, num);
      add_to(result);
      gather_outputs(begin, num);
      if (!options.stops || begin + num >= all) continue;
      result.is_stopped = options.stops();
      if (result.is_stopped) return result;
      at_once = next_part(at_once, options.most_at_once, std::chrono::steady_clock::now() - start);
    }
    if (outputs_) {
      std::ranges::copy(outputs_->results(result.losses, session_.next_step()),
                        std::back_inserter(result.losses.losses));
    }
    return result;
  }

  void run(const schedule::Operation& operation) override {
    ErrorContext place{.rank = world_.rank(),
                       .operation = "values of the evaluation",
                       .step = session_.next_step()};
    if (ValueShards::is_about(operation)) {
      return session_.operations().values()->run(operation, place);
    }
    TRIREME_CHECK(operation.kind == schedule::OperationKind::kExchange, "no other is written");
    place.operation = "losses of the evaluation";
    collectives::unite(*group_, words_, world_.watch, place);
  }

  void begin_action(const schedule::Action& /*action*/) override {}

  /// Keeps the losses that were made, their weights, and outputs.
  void end_action(const schedule::Action& action) override {
    const program::StageProgram& stage = stages_.program(action.stage);
    const bool gives_outputs = outputs_ && !stage.outputs().empty();
    if (stage.losses().empty() && !gives_outputs) return;
    const std::int64_t microbatch = input_.index_of(action.microbatch);
    const bool must_read = (weights_.reads_batch() || gives_outputs) && stage.fields().empty();
    if (must_read) batch_ = read(microbatch);
    if (gives_outputs) {
      outputs_->keep(stage, microbatch, batch_, [&](graph::ValueId value) {
        return workers_.at(action.stage)->value(action.microbatch, value);
      });
    }
    const auto weights = weights_.weights(batch_, input_.sizes[action.microbatch]);
    for (const int loss : stage.losses()) {
      const std::size_t word = 2 * ((microbatch - begin_) * num_losses() + loss);
      words_[word] = std::bit_cast<std::uint64_t>(stages_.loss_sum(action.microbatch, loss));
      words_[word + 1] = std::bit_cast<std::uint64_t>(weights[loss]);
    }
  }

  const std::vector<double>& totals() const override { return no_totals_; }

  std::span<std::byte> tie_memory(const schedule::Channel& /*channel*/, int /*item*/) override {
    TRIREME_CHECK(false, "an evaluation has no ties");
  }

 private:
  /// As many as take a second or two; the first rank decides.
  std::int64_t next_part(std::int64_t at_once, std::int64_t most,
                         std::chrono::steady_clock::duration took) const {
    using namespace std::chrono_literals;
    std::int64_t next = at_once;
    if (took < 1s) next = std::min(2 * at_once, most);
    if (took > 4s) next = std::max<std::int64_t>(at_once / 2, 1);
    return std::stoll(
        collectives::from_first(world_, std::to_string(next), "part of the evaluation"));
  }

  /// `num` microbatches from `begin` on, of all replicas.
  RanProgram run(const schedule::StepProgram& program, std::int64_t begin, int num) {
    begin_ = begin;
    words_.assign(2 * num * num_losses(), 0);
    input_ = input_of(begin, num);
    pipeline::Mailbox mailbox(program, world_.rank(), world_.endpoint, world_.watch);
    pipeline::StepRunner runner(program, world_.rank(), workers_, *this, mailbox);
    // The mailbox outlives what the endpoint still sends of it.
    telling_others(world_, session_.next_step(), [&] { runner.run(input_); });
    return {"evaluation", input_.step, program, runner.times(), runner.begin()};
  }

  /// Replicas that have one less than others have a place for it, without samples.
  pipeline::StepInput input_of(std::int64_t begin, int num) {
    pipeline::StepInput input{.step = session_.next_step(), .purpose = " of the evaluation"};
    const int replicas = num_replicas(), most = (num - 1) / replicas + 1;
    const PlaceInMesh& place = session_.place();
    for (int r = place.first_replica; r < place.first_replica + place.num_replicas; ++r) {
      const int first = schedule::first_of_part(num, replicas, r);
      const int end = schedule::first_of_part(num, replicas, r + 1);
      for (int m = first; m < first + most; ++m) {
        input.indices.push_back(begin + m);
        input.sizes.push_back(m < end ? reader_.size_of(range(begin + m)) : graph::BatchSize());
      }
    }
    input.read = [this](int m) { return batch_ = read(input_.index_of(m)); };
    return input;
  }

  /// Of all replicas' microbatches from `begin` on.
  void gather_outputs(std::int64_t begin, int num) {
    if (!outputs_) return;
    telling_others(world_, session_.next_step(), [&] {
      for (int replica = 0; replica < num_replicas(); ++replica) {
        const int end = schedule::first_of_part(num, num_replicas(), replica + 1);
        for (int m = schedule::first_of_part(num, num_replicas(), replica); m < end; ++m) {
          outputs_->gather(begin + m, replica, reader_.size_of(range(begin + m)),
                           session_.next_step());
        }
      }
    });
  }

  void add_to(RankEvaluation& result) const {
    for (std::size_t i = 0; i < words_.size(); i += 2) {
      const double sum = std::bit_cast<double>(words_[i]);
      if (i / 2 % num_losses() == 0) result.microbatch_sums.emplace_back();
      result.microbatch_sums.back().push_back(sum);
      LossTotal& loss = result.losses.losses[i / 2 % num_losses()];
      loss.sum += sum;
      loss.weight += std::bit_cast<double>(words_[i + 1]);
    }
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
  std::size_t num_losses() const { return recording_.graph.losses.size(); }

  const collectives::World& world_;
  const Workload& workload_;
  const RankSession& session_;
  const record::Recording& recording_;
  layout::Plan plan_;
  schedule::ShardedBuckets sharded_;
  std::unique_ptr<collectives::Group> group_;
  NoGradients sink_;
  program::SiteTable sites_;
  RankStages stages_;
  std::map<int, pipeline::StageWorker*> workers_;
  std::optional<GatheredOutputs> outputs_;
  program::WeightProgram weights_;
  BatchReader reader_;
  std::int64_t num_samples_;
  const std::vector<double> no_totals_;

  // Of the part that runs.
  std::int64_t begin_ = 0;  ///< Its first microbatch, of all replicas.
  pipeline::StepInput input_;
  Batch batch_;                       ///< That was read last.
  std::vector<std::uint64_t> words_;  ///< Sum and weight by microbatch and loss.
};

}  // namespace

void check_evaluation(const RankSession& session, const Workload& workload,
                      const record::Recording& recording) {
  check_evaluation_data(recording.graph, workload, session.plan().batch.microbatch);
  evaluation_plan(session, matching_recording(recording, session).graph);
}

RankEvaluation evaluate_ranks(const collectives::World& world, const Workload& workload,
                              const RankSession& session, const record::Recording& recording,
                              const EvaluationOptions& options) {
  if (!workload.evaluation) {
    throw Error(ErrorKind::kInvalidArgument,
                "the workload has no evaluation data; set Workload::evaluation");
  }
  const record::ModeGuard in_mode(workload.model, graph::Mode::kEval);
  const record::Recording matching = matching_recording(recording, session);
  return Evaluation(world, workload, session, matching).run(options);
}

}  // namespace trireme::train
