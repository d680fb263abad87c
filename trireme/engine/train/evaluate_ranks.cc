#include "trireme/engine/train/evaluate_ranks.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/data/range.h"
#include "trireme/engine/pipeline/message.h"
#include "trireme/engine/program/step_losses.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/engine/train/session.h"
#include "trireme/plan/graph/json.h"
#include "trireme/plan/layout/manual.h"
#include "trireme/plan/layout/matching_cuts.h"

namespace trireme::train {
namespace {

constexpr transport::Tag kEvaluationTags = transport::Tag{3} << 61;  // apart from all others

/// Nothing is trained here.
class NoGradients : public program::GradientSink {
 public:
  void accept(int, const at::Tensor&) override {}
};

layout::Plan evaluation_plan(const RankSession& session, const graph::Graph& graph) {
  const auto cuts = layout::matching_cuts(session.recording().graph, session.plan(), graph);
  return layout::make_manual_plan(graph, graph::graph_sha256(graph), cuts, session.plan().batch);
}

/// One rank's part of an evaluation.
class Evaluation {
 public:
  Evaluation(const World& world, const Workload& workload, const RankSession& session,
             const record::Recording& recording)
      : world_(world),
        workload_(workload),
        session_(session),
        recording_(recording),
        plan_(evaluation_plan(session, recording.graph)),
        sites_(recording, sink_),
        stage_(recording, plan_, session.stage(), sites_),
        weights_(recording),
        reader_(workload.evaluation, workload.model),
        num_samples_(workload.evaluation->num_samples()) {}

  std::int64_t num_microbatches() const {
    return data::num_evaluation_microbatches(num_samples_, plan_.batch.microbatch);
  }

  /// Sum and weight of each loss that is made here; zeros for others.
  std::vector<double> run(std::int64_t microbatch) {
    const data::IndexRange range =
        data::evaluation_range(num_samples_, plan_.batch.microbatch, microbatch);
    const Batch batch = read(range);
    program::ValueMap received;
    for (const layout::Crossing& crossing : stage_.receives()) {
      received[crossing.value] = receive(crossing, microbatch);
    }
    const program::StageRun run =
        stage_.forward({batch, range.size(), {0, 0, microbatch}}, std::move(received));
    for (const layout::Crossing& crossing : stage_.sends()) send(crossing, run, microbatch);
    return losses(run, batch, range.size());
  }

 private:
  Batch read(const data::IndexRange& range) const {
    Batch batch = reader_.read(range);
    set_step_scalars(batch, workload_.model, session_.next_step());
    return batch;
  }

  int rank_of(int stage) const {
    const layout::Role& role = layout::train_role(session_.plan());
    return role.placement[stage * role.mesh.data + session_.replica()];
  }

  ErrorContext place(std::int64_t microbatch, const char* operation) const {
    return {.rank = world_.rank(),
            .operation = operation,
            .step = session_.next_step(),
            .microbatch = microbatch};
  }

  at::Tensor receive(const layout::Crossing& crossing, std::int64_t microbatch) const {
    const int peer = rank_of(crossing.stages.front());
    at::Tensor message;
    const auto work = world_.endpoint.recv(
        peer, kEvaluationTags + static_cast<transport::Tag>(crossing.value),
        [&message](std::size_t bytes) {
          message = pipeline::make_message(bytes);
          return std::span(static_cast<std::byte*>(message.mutable_data_ptr()), bytes);
        });
    transport::await(transport::message_work(*work, world_.endpoint, peer), world_.watch,
                     place(microbatch, "recv of the evaluation"));
    return pipeline::unpack(message);
  }

  void send(const layout::Crossing& crossing, const program::StageRun& run,
            std::int64_t microbatch) const {
    const at::Tensor message = pipeline::pack(stage_.value(run, crossing.value));
    const std::span bytes(static_cast<const std::byte*>(message.const_data_ptr()),
                          message.nbytes());
    for (std::size_t i = 1; i < crossing.stages.size(); ++i) {
      const int peer = rank_of(crossing.stages[i]);
      const auto work = world_.endpoint.send(
          peer, kEvaluationTags + static_cast<transport::Tag>(crossing.value), bytes);
      transport::await(transport::message_work(*work, world_.endpoint, peer), world_.watch,
                       place(microbatch, "send of the evaluation"));
    }
  }

  std::vector<double> losses(const program::StageRun& run, const Batch& batch,
                             std::int64_t num_samples) const {
    std::vector<double> result(2 * recording_.graph.losses.size());
    if (stage_.losses().empty()) return result;
    const std::vector<double> weights = weights_.weights(batch, num_samples);
    for (const int i : stage_.losses()) {
      const graph::Loss& loss = recording_.graph.losses[i];
      result[2 * i] = program::sum_of(loss, stage_.value(run, loss.value), weights[i]);
      result[2 * i + 1] = weights[i];
    }
    return result;
  }

  const World& world_;
  const Workload& workload_;
  const RankSession& session_;
  const record::Recording& recording_;
  layout::Plan plan_;
  NoGradients sink_;
  program::SiteTable sites_;
  program::StageProgram stage_;
  program::WeightProgram weights_;
  BatchReader reader_;
  std::int64_t num_samples_;
};

std::string bytes_text(const std::vector<double>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double)};
}

}  // namespace

void check_evaluation(const RankSession& session, const Workload& workload,
                      const record::Recording& recording) {
  check_remainder(recording.graph, workload, session.plan().batch.microbatch);
  evaluation_plan(session, recording.graph);
}

program::StepLosses evaluate_ranks(const World& world, const Workload& workload,
                                   const RankSession& session, const record::Recording& recording) {
  if (!workload.evaluation) {
    throw Error(ErrorKind::kInvalidArgument,
                "the workload has no evaluation data; set Workload::evaluation");
  }
  const record::ModeGuard in_mode(workload.model, graph::Mode::kEval);
  Evaluation evaluation(world, workload, session, recording);
  const int num_replicas = layout::train_role(session.plan()).mesh.data;
  const std::size_t width = 2 * recording.graph.losses.size();
  std::vector<double> mine;
  for (std::int64_t m = 0; m < evaluation.num_microbatches(); ++m) {
    const bool is_mine = m % num_replicas == session.replica();
    const std::vector<double> numbers = is_mine ? evaluation.run(m) : std::vector<double>(width);
    mine.insert(mine.end(), numbers.begin(), numbers.end());
  }
  // Each number is that of one rank; the others' zeros change nothing.
  std::vector<double> all(mine.size());
  for (const std::string& text : gather(world, bytes_text(mine), "evaluation")) {
    std::vector<double> numbers(mine.size());
    std::memcpy(numbers.data(), text.data(), text.size());
    std::transform(all.begin(), all.end(), numbers.begin(), all.begin(), std::plus<>());
  }
  program::StepLosses losses = program::empty_losses(recording.graph);
  for (std::size_t i = 0; i < all.size(); i += 2) {
    program::LossTotal& loss = losses.losses[i % width / 2];
    loss.sum += all[i];
    loss.weight += all[i + 1];
  }
  return losses;
}

}  // namespace trireme::train
