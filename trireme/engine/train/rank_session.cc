#include "trireme/engine/train/rank_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/engine/parameters/replica_sums.h"
#include "trireme/engine/reference/drift_check.h"
#include "trireme/engine/train/fed_source.h"
#include "trireme/engine/train/finite_check.h"
#include "trireme/engine/train/planned_recording.h"
#include "trireme/engine/train/replica_buffers.h"
#include "trireme/engine/train/telling_others.h"
#include "trireme/error.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/check_crossings.h"
#include "trireme/plan/schedule/check_parameters.h"
#include "trireme/plan/schedule/check_program.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/schedule/step_facts.h"

namespace trireme::train {
namespace {

/// The workload, if its samples can be those of this plan's ranks: a training loop hands in the rows of one replica.
const Workload& checked(const Workload& workload, const layout::Plan& plan) {
  const bool is_fed = dynamic_cast<const FedSource*>(workload.training.get()) != nullptr;
  if (!is_fed || layout::train_role(plan).is_even()) return workload;
  throw Error(ErrorKind::kInvalidArgument,
              "samples are handed in step by step, the rows of one replica on each rank, and some "
              "ranks of the plan run several; place a rank for each replica");
}

/// The plan, if these ranks can run it on this graph.
const layout::Plan& checked(const collectives::World& world, const layout::Plan& plan,
                            const graph::Graph& planned, const TrainingOptions& options) {
  const int expected = layout::train_role(plan).num_ranks();
  if (world.endpoint.world_size() != expected) {
    throw Error(ErrorKind::kInvalidArgument,
                "the plan is for " + std::to_string(expected) + " ranks and " +
                    std::to_string(world.endpoint.world_size()) +
                    " were started; start as many or partition for these");
  }
  check_buffers(planned, options.buffers, layout::train_role(plan));
  return plan;
}

schedule::StepProgram checked_program(const graph::Graph& planned, const layout::Plan& plan,
                                      const layout::ParameterMap& map,
                                      const TrainingOptions& options) {
  const schedule::ProgramOptions program_options{.has_norm = needs_norm(options),
                                                 .tolerant = options.tolerant};
  schedule::StepProgram program = schedule::make_step_program(planned, plan, map, program_options);
  const schedule::StepFacts facts = schedule::step_facts(planned, plan, map, program_options);
  const schedule::Schedule schedule = schedule::schedule_of(plan);
  schedule::check(program, schedule, facts);
  schedule::check_crossings(program, planned, plan);
  schedule::check_parameters(program, planned, plan, map);
  return program;
}

/// Where there are other ranks of the position and sums are made in place, they lie in the group's memory.
parameters::LaneAccumulator::Options options_of_sums(const TrainingOptions& options,
                                                     const PlaceInMesh& place,
                                                     const schedule::StepProgram& program,
                                                     const Groups& groups) {
  parameters::LaneAccumulator::Options sums{.dtype = checked_gradient_dtype(options),
                                            .num_replicas = place.num_replicas};
  if (place.num_ranks > 1 && sums.dtype == Dtype::kF32)
    sums.memory = parameters::memory_of(group_of(program, groups, schedule::GroupKind::kData));
  return sums;
}

/// The values of the stages here, where the plan shards parameters a replica's shards of them.
parameters::ParameterStore make_store(const record::Recording& recording, const layout::Plan& plan,
                                      const std::vector<int>& stages, const PlaceInMesh& place,
                                      const Model& model) {
  layout::ParameterMap map = layout::make_parameter_map(recording.graph, plan);
  std::vector<bool> sharded = layout::sharded_buckets(map, plan);
  return {std::move(map),
          recording.graph,
          recording.tensors,
          {.stages = parameters::Stages(stages.begin(), stages.end()),
           .fill = model.fill,
           .sharded = std::move(sharded),
           .replica = place.index}};
}

std::optional<int> shards_of(const layout::Plan& plan, const PlaceInMesh& place) {
  const bool is_shared = plan.sharded_state && place.num_ranks > 1;
  return is_shared ? std::optional(place.index) : std::nullopt;
}

void require(bool is_met, const char* otherwise) {
  if (!is_met) throw Error(ErrorKind::kInvalidArgument, otherwise);
}

}  // namespace

class RankSession::Sink : public program::GradientSink {
 public:
  explicit Sink(parameters::LaneAccumulator& sums) : sums_(sums) {}
  void accept(int site, const at::Tensor& gradient) override { sums_.accept(site, gradient); }

 private:
  parameters::LaneAccumulator& sums_;
};

RankSession::RankSession(const collectives::World& world, const Workload& workload,
                         const record::Recording& recorded, const layout::Plan& plan,
                         const TrainingOptions& options)
    : world_(world),
      workload_(checked(workload, plan)),
      recorded_(recorded),
      recording_(planned_recording(recorded, plan)),
      plan_(checked(world, plan, recording_.graph, options)),
      options_(options),
      reader_threads_(options.reader_threads, cores_of_rank(num_local_ranks(world))),
      reader_(workload, plan.batch, options.seed, order_of(options), reader_threads_.spread()),
      place_(place_of(plan, world.endpoint.rank())),
      stages_(layout::stages_at(plan, place_.position)),
      store_(make_store(recording_, plan_, stages_, place_, workload.model)),
      program_(checked_program(recording_.graph, plan_, store_.map(), options)),
      groups_(make_groups(program_, world)),
      sums_(store_, recording_.graph,
            static_cast<int>(plan.batch.lanes / layout::train_role(plan).mesh.data),
            options_of_sums(options, place_, program_, groups_)),
      sink_(std::make_unique<Sink>(sums_)),
      sites_(recording_, *sink_),
      held_(recording_, plan_, stages_, sites_,
            {.scratch = offload_folder(options), .capture = capture_of(options)}),
      batches_(reader_, recording_, held_, plan_, place_) {
  release_frozen(recording_, plan_, stages_);
  fill_parameters(workload_.model);
  const int replicas = layout::train_role(plan_).mesh.data;
  if (world.rank() == 0 && !schedule::keeps_bits(plan_.batch, replicas)) {
    world_.watch.logger.warning(
        std::to_string(plan_.batch.lanes) + " lanes on " + std::to_string(replicas) +
        " replicas: weights differ in their last bits from those of other numbers of replicas, as "
        "--tolerant allows");
  }
  const int rank = world.endpoint.rank();
  operations_ = std::make_unique<RankOperations>(
      RankParts{rank, stages_, recording_, plan_, place_, program_, store_,
                shards_of(plan_, place_), sums_, held_, groups_, world_.watch, batches_},
      options);
  mailbox_ = std::make_unique<pipeline::Mailbox>(program_, rank, world.endpoint, world.watch);
  runner_ = std::make_unique<pipeline::StepRunner>(program_, rank, held_.workers(), *operations_,
                                                   *mailbox_);
}

RankSession::~RankSession() = default;

void RankSession::begin(std::int64_t step) {
  if (checks_drift(options_, step) && world_.rank() == 0) {
    reference::check_drift_of_rank(recorded_, workload_.model, reader_.maker(), step,
                                   world_.watch.logger);
  }
  begin_ = std::chrono::steady_clock::now();
  input_ = pipeline::StepInput{.seed = options_.seed,
                               .step = step,
                               .random_step = step,
                               .sizes = {},
                               .read = [this, step](int m) { return batches_.take(step, m); },
                               .purpose = {}};
  for (int m = 0; m < batches_.num_microbatches(); ++m) {
    input_->sizes.push_back(batches_.size_of(step, m));
    input_->indices.push_back(batches_.first_microbatch() + m);
  }
  operations_->begin_step(*input_, batches_.weigh(step));
}

StepReport RankSession::report() {
  StepReport report{.step = next_step_,
                    .losses = operations_->losses(),
                    .microbatch_sums = operations_->microbatch_sums(),
                    .gradient_norm = operations_->gradient_norm(),
                    .loss_scale = operations_->scale_of_step(),
                    .is_skipped = operations_->is_skipped()};
  for (const std::string& line : held_.take_refusals()) world_.watch.logger.debug(line);
  reading_ = batches_.take_reading();
  report.data_wait_seconds = reading_.waited_seconds;
  report.compute_seconds = runner_->compute_seconds();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  if (const auto said = reader_threads_.add_step(reading_, report.seconds)) {
    world_.watch.logger.info(*said);
  }
  if (reading_.batches_taken > 0) reading_.threads = reader_threads_.count();
  return report;
}

void RankSession::resume(checkpoint::Reader& reader) {
  const checkpoint::Index& index = reader.index();
  const std::int64_t batch = plan_.batch.global_batch;
  if (index.position % batch != 0 || index.position / batch != index.step) {
    throw Error(ErrorKind::kCorruptData,
                "the checkpoint stands at sample " + std::to_string(index.position) + " after " +
                    std::to_string(index.step) + " steps of " + std::to_string(batch) + " samples");
  }
  restore(state(), reader);
  next_step_ = index.step;
}

StepReport RankSession::step() {
  require_step();
  telling_others(world_, next_step_, [&] {
    begin(next_step_);
    runner_->run(*input_);
  });
  StepReport done = report();
  ++next_step_;
  return done;
}

StepReport RankSession::backward() {
  require_backward();
  telling_others(world_, next_step_, [&] {
    begin(next_step_);
    runner_->run_to(*input_, schedule::OperationKind::kUpdate);
  });
  is_between_ = true;
  return report();
}

void RankSession::update() {
  require_update();
  telling_others(world_, next_step_, [&] { runner_->run_rest(); });
  is_between_ = false;
  ++next_step_;
}

void RankSession::require_step() const {
  require(options_.optimizer.name != kOwnOptimizer,
          "with the optimizer `own` a step has two halves: call `backward`, then `update`");
}

void RankSession::require_backward() const {
  require(options_.optimizer.name == kOwnOptimizer,
          "a step has halves with the optimizer `own` alone; call `step`");
  require(!is_between_, "`backward` comes after `update`");
}

void RankSession::require_update() const {
  require(is_between_, "`update` and `gradients` come after `backward`");
}

Tensors RankSession::gradients() const {
  require_update();
  Tensors found;
  const parameters::HasGradient is_moved = operations_->moved();
  for (const std::string& name : store_.names()) {
    if (is_moved(name)) {
      const int site = store_.slot(store_.owner(name)).site;
      found[name] = store_.gradient_view(sums_.gradients(), name, site);
    }
  }
  return found;
}

void RankSession::exchange_averages() {
  const schedule::StepProgram program = schedule::make_values_program(program_);
  const pipeline::StepInput input{.step = next_step_, .read = {}, .purpose = " of averages"};
  pipeline::Mailbox mailbox(program, world_.rank(), world_.endpoint, world_.watch);
  pipeline::StepRunner runner(program, world_.rank(), {}, *operations_, mailbox);
  telling_others(world_, next_step_, [&] {
    parameters::exchange_averages(operations_->optimizer(), store_, operations_->part());
    runner.run(input);
  });
}

RankSession::WholeValues::WholeValues(const RankSession& session) : session_(session) {
  const ErrorContext place{.rank = session.world_.rank(), .operation = "gather values"};
  for (int b = 0; b < std::ssize(session.store_.map().buckets); ++b) {
    if (session.store_.sharded(b) == nullptr) continue;
    session.operations_->values()->unshard_now(b, place);
    buckets_.push_back(b);
  }
}

RankSession::WholeValues::~WholeValues() {
  for (const int bucket : buckets_) session_.operations_->values()->reshard(bucket);
}

void RankSession::check_finite() {
  if (options_.allow_nonfinite) return;
  std::string first;
  for (const std::string& problem :
       collectives::gather(world_, not_finite(store_), "finite values")) {
    if (first.empty() || (!problem.empty() && problem < first)) first = problem;
  }
  require_finite(first, std::max<std::int64_t>(next_step_ - 1, 0));
}

void RankSession::check_replicas() {
  if (layout::train_role(plan_).mesh.data == 1) return;  // As on all ranks.
  telling_others(world_, std::max<std::int64_t>(next_step_ - 1, 0),
                 [&] { operations_->check_replicas(); });
}

}  // namespace trireme::train
