#include "trireme/engine/train/evaluate_ranks.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "trireme/data/range.h"
#include "trireme/engine/pipeline/mailbox.h"
#include "trireme/engine/pipeline/message.h"
#include "trireme/engine/program/step_losses.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/engine/train/serial_session.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/matching_cuts.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {
namespace {

/// Nothing is trained here.
class NoGradients : public program::GradientSink {
 public:
  void accept(int, const at::Tensor&) override {}
};

layout::Plan evaluation_plan(const RankSession& session, const graph::Graph& graph) {
  const auto cuts = layout::matching_cuts(session.recording().graph, session.plan(), graph);
  return layout::make_manual_plan(graph, graph::graph_sha256(graph), cuts, session.plan().batch);
}

/// Channels of forward values between the stages of a replica, and how many messages of an
/// evaluation this rank receives: what a mailbox has to know.
schedule::StepProgram value_program(const layout::Role& role, int replica, int rank,
                                    const std::vector<layout::Crossing>& crossings,
                                    std::int64_t num_microbatches) {
  using schedule::ChannelKind;
  schedule::StepProgram program;
  program.ranks.resize(role.placement.size());
  std::map<std::pair<int, int>, int> channels;
  const auto rank_of = [&](int stage) { return role.placement[stage * role.mesh.data + replica]; };
  for (const layout::Crossing& crossing : crossings) {
    const int from = crossing.stages[0];
    for (std::size_t i = 1; i < crossing.stages.size(); ++i) {
      const int to = crossing.stages[i];
      const int next = static_cast<int>(channels.size());
      const auto [channel, is_new] = channels.emplace(std::pair(from, to), next);
      if (is_new) {
        program.channels.push_back({ChannelKind::kValue, from, to, rank_of(from), rank_of(to)});
      }
      for (std::int64_t m = 0; rank_of(to) == rank && m < num_microbatches; ++m) {
        program.ranks[rank].push_back({.kind = schedule::OperationKind::kRecv,
                                       .channel = channel->second,
                                       .item = crossing.value});
      }
    }
  }
  return program;
}

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
        sites_(recording, sink_),
        stage_(recording, plan_, session.stage(), sites_),
        weights_(recording, {stage_.weighed_losses().begin(), stage_.weighed_losses().end()}),
        reader_(workload.evaluation, workload.model),
        num_samples_(workload.evaluation->num_samples()),
        program_(value_program(role(), session.replica(), world.rank(),
                               layout::crossings(recording.graph, plan_), num_own())),
        mailbox_(program_, world.rank(), world.endpoint, world.watch) {
    mailbox_.begin_step();
  }

  /// Sum and weight of each loss over all samples, on every rank.
  StepLosses run() {
    const std::size_t width = 2 * recording_.graph.losses.size();
    std::vector<std::uint64_t> words(num_microbatches() * width);
    for (std::int64_t m = session_.replica(); m < num_microbatches(); m += role().mesh.data) {
      run(m, std::span(words).subspan(m * width, width));
    }
    mailbox_.flush(place(num_microbatches(), "end of the evaluation"));
    const auto group = collectives::make_world_group(world_, "evaluation");
    collectives::unite(*group, words, world_.watch,
                       place(num_microbatches(), "losses of the evaluation"));
    StepLosses losses = program::empty_losses(recording_.graph);
    for (std::size_t i = 0; i < words.size(); i += 2) {
      LossTotal& loss = losses.losses[i % width / 2];
      loss.sum += std::bit_cast<double>(words[i]);
      loss.weight += std::bit_cast<double>(words[i + 1]);
    }
    return losses;
  }

 private:
  /// Fills in sum and weight of the losses that are made here.
  void run(std::int64_t microbatch, std::span<std::uint64_t> losses) {
    const data::IndexRange range =
        data::evaluation_range(num_samples_, plan_.batch.microbatch, microbatch);
    const Batch batch = read(range);
    program::ValueMap received;
    for (const layout::Crossing& crossing : stage_.receives()) {
      const int channel = channel_between(crossing.stages.front(), session_.stage());
      received[crossing.value] =
          pipeline::unpack(mailbox_.take(channel, place(microbatch, "recv of the evaluation")));
    }
    const program::StageRun run =
        stage_.forward({batch, range.size(), {0, 0, microbatch}}, std::move(received));
    for (const layout::Crossing& crossing : stage_.sends()) send(crossing, run, microbatch);
    const std::vector<double> weights = weights_.weights(batch, range.size());
    for (const int i : stage_.losses()) {
      const graph::Loss& loss = recording_.graph.losses[i];
      const double sum = program::sum_of(loss, stage_.value(run, loss.value), range.size());
      losses[2 * i] = std::bit_cast<std::uint64_t>(sum);
      losses[2 * i + 1] = std::bit_cast<std::uint64_t>(weights[i]);
    }
  }

  const layout::Role& role() const { return layout::train_role(session_.plan()); }

  std::int64_t num_microbatches() const {
    return data::num_evaluation_microbatches(num_samples_, plan_.batch.microbatch);
  }

  /// Those of this replica.
  std::int64_t num_own() const {
    const std::int64_t replicas = role().mesh.data;
    return (num_microbatches() - session_.replica() + replicas - 1) / replicas;
  }

  /// Nothing where the stage takes nothing.
  Batch read(const data::IndexRange& range) const {
    if (stage_.fields().empty() && !weights_.reads_batch()) return {};
    Batch batch = reader_.read(range);
    set_step_scalars(batch, workload_.model, session_.next_step());
    return batch;
  }

  ErrorContext place(std::int64_t microbatch, const char* operation) const {
    return {.rank = world_.rank(),
            .operation = operation,
            .step = session_.next_step(),
            .microbatch = microbatch};
  }

  int channel_between(int from_stage, int to_stage) const {
    const auto found = std::ranges::find_if(program_.channels, [&](const auto& channel) {
      return channel.from_stage == from_stage && channel.to_stage == to_stage;
    });
    return static_cast<int>(found - program_.channels.begin());
  }

  /// A stage that is k further may be k microbatches behind: what is between them is at work.
  void send(const layout::Crossing& crossing, const program::StageRun& run,
            std::int64_t microbatch) {
    const at::Tensor message = pipeline::pack(stage_.value(run, crossing.value));
    for (std::size_t i = 1; i < crossing.stages.size(); ++i) {
      const int to = crossing.stages[i];
      const int channel = channel_between(session_.stage(), to);
      const auto values = std::ranges::count_if(stage_.sends(), [to](const auto& other) {
        return std::ranges::count(other.stages, to) != 0;
      });
      const auto most = static_cast<int>(values) * (to - session_.stage());
      mailbox_.make_room(channel, most, place(microbatch, "send of the evaluation"));
      mailbox_.send(channel, message);
    }
  }

  const collectives::World& world_;
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
  schedule::StepProgram program_;
  pipeline::Mailbox mailbox_;
};

}  // namespace

void check_evaluation(const RankSession& session, const Workload& workload,
                      const record::Recording& recording) {
  check_remainder(recording.graph, workload, session.plan().batch.microbatch);
  evaluation_plan(session, recording.graph);
}

StepLosses evaluate_ranks(const collectives::World& world, const Workload& workload,
                          const RankSession& session, const record::Recording& recording) {
  if (!workload.evaluation) {
    throw Error(ErrorKind::kInvalidArgument,
                "the workload has no evaluation data; set Workload::evaluation");
  }
  const record::ModeGuard in_mode(workload.model, graph::Mode::kEval);
  return Evaluation(world, workload, session, recording).run();
}

}  // namespace trireme::train
