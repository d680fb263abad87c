#include "trireme/engine/train/rank_operations.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/engine/parameters/replica_sums.h"
#include "trireme/engine/train/fed_source.h"
#include "trireme/engine/train/finite_check.h"
#include "trireme/engine/train/learning_rate.h"
#include "trireme/engine/train/parameter_groups.h"
#include "trireme/engine/train/replica_buffers.h"
#include "trireme/engine/train/turns.h"
#include "trireme/error.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/step_facts.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::train {
namespace {

using schedule::ChannelKind;
using schedule::GroupKind;
using schedule::OperationKind;

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

std::map<std::string, int> parameter_indices(const graph::Graph& graph) {
  std::map<std::string, int> indices;
  for (const graph::Parameter& parameter : graph.parameters) {
    indices.emplace(parameter.name, static_cast<int>(indices.size()));
  }
  return indices;
}

constexpr std::size_t kWordBits = 64;

}  // namespace

RankOperations::RankOperations(const RankParts& parts, const TrainingOptions& options)
    : parts_(parts),
      options_(options),
      optimizer_(make_optimizer(options.optimizer)),
      counts_(counting_losses(options.optimizer)),
      commits_(parts.recording, parts.plan.batch.microbatch),
      buffers_(parts.recording, parts.plan, parts.stage_indices, options.buffers),
      weighs_(parts.program.ranks[parts.rank].front().kind == OperationKind::kWeigh),
      loss_scale_(options.loss_scale),
      parameters_(parameter_indices(parts.recording.graph)) {
  if (parts.shards_of) {
    part_ = {parts.shards_of, [this](std::span<std::uint64_t> words) {
               collectives::unite(group(GroupKind::kData), words, parts_.watch, place("unite"));
             }};
  }
  parameters::check_parameters(*optimizer_, parts.store, part_);
  check_groups(options.optimizer.groups, parts.recording.graph);
  check_turns(options.optimizer.turns, parts.recording.graph);
  if (parts.place.num_ranks == 1) return;
  const layout::ParameterMap& map = parts.store.map();
  values_ = std::make_unique<ValueShards>(parts.store, group(GroupKind::kData), parts.watch);
  reducer_ = std::make_unique<parameters::Reducer>(
      parts.sums, map, layout::scattered_buckets(map, parts.plan), group(GroupKind::kData));
}

collectives::Group& RankOperations::group(GroupKind kind) const {
  return group_of(parts_.program, parts_.groups, kind);
}

void RankOperations::wait(transport::Work& work, const collectives::Group& group,
                          const char* what) const {
  transport::await(collectives::group_work(work, group), parts_.watch, place(what));
}

ErrorContext RankOperations::place(const char* what) const {
  return {.rank = parts_.rank, .operation = what, .step = input_->step};
}

void RankOperations::begin_step(const pipeline::StepInput& input,
                                std::vector<std::vector<double>> weights) {
  input_ = &input;
  weights_ = std::move(weights);
  totals_.clear();
  // Without weights of their own, losses weigh the same on every rank.
  std::vector<std::vector<double>> all;
  for (int rank = 0; rank < parts_.place.num_ranks; ++rank) {
    all.insert(all.end(), weights_.begin(), weights_.end());
  }
  scale_of_step_ = loss_scale_.value();
  overflow_.clear();
  is_skipped_ = false;
  if (!weighs_) set_totals(program::total_weights(parts_.recording.graph, all));
  norm_ = 0;
  reached_.assign(parameters_.size(), false);
  last_stages_.clear();
  parts_.sums.begin_step();
  buffers_.begin_step();
  if (reducer_) reducer_->begin_step();
  attach_hashes();
}

/// What the step before has made, and nobody may have changed since.
void RankOperations::attach_hashes() {
  if (reducer_) parameters::attach_value_hashes(parts_.store, group(GroupKind::kData));
}

void RankOperations::set_totals(std::vector<double> totals) {
  scaled_totals_ = program::scaled(totals, scale_of_step_);
  if (counts_) {
    scaled_totals_ =
        program::counted(std::move(scaled_totals_), parts_.recording.graph, counts_in_step());
  }
  totals_ = std::move(totals);
}

std::function<bool(const std::string&)> RankOperations::counts_in_step() const {
  return [this](const std::string& loss) { return counts_(input_->step, loss); };
}

parameters::HasGradient RankOperations::moved() const {
  return moved_in(options_.optimizer, input_->step,
                  [this](const std::string& name) { return has_gradient(name); });
}

/// The weights of all replicas, in global microbatch order.
void RankOperations::weigh() {
  const std::size_t num_losses = parts_.recording.graph.losses.size();
  std::vector<double> mine;
  for (const auto& weights : weights_) mine.insert(mine.end(), weights.begin(), weights.end());
  const auto bytes = gather(GroupKind::kData, std::as_bytes(std::span(mine)), "weigh");
  std::vector<std::vector<double>> all(bytes.size() / (num_losses * sizeof(double)),
                                       std::vector<double>(num_losses));
  for (std::size_t m = 0; m < all.size(); ++m) {
    const std::size_t row_bytes = num_losses * sizeof(double);
    std::memcpy(all[m].data(), bytes.data() + m * row_bytes, row_bytes);
  }
  set_totals(program::total_weights(parts_.recording.graph, all));
}

void RankOperations::begin_action(const schedule::Action& action) {
  parts_.sums.begin_replica(action.microbatch / parts_.program.num_microbatches);
}

/// A replica has whole lanes: its microbatches begin where one does.
void RankOperations::end_action(const schedule::Action& action) {
  if (!schedule::completes_gradients(action.kind)) return;
  if ((action.microbatch + 1) % parts_.plan.batch.microbatches_per_lane() == 0)
    parts_.sums.end_lane(action.stage);
}

void RankOperations::reduce(int bucket) {
  const int stage = parts_.store.map().buckets[bucket].stage;
  if (last_stages_.insert(stage).second) {
    parts_.sums.begin_last_microbatch(stage, [this](int complete) { reducer_->on_sum(complete); });
  }
  reducer_->expect(bucket);
}

/// Reading is held back: a sum waits for its slowest rank, so each pays for what delays one.
void RankOperations::join(int bucket) {
  const RankBatches::Held held(parts_.batches);
  wait(*reducer_->work(bucket), group(GroupKind::kData), "join bucket");
  reducer_->take(bucket);
}

std::vector<std::byte> RankOperations::gather(GroupKind kind, std::span<const std::byte> mine,
                                              const char* what) {
  collectives::Group& ranks = group(kind);
  std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(ranks.size()));
  wait(*ranks.all_gather(mine, all), ranks, what);
  return all;
}

void RankOperations::exchange() {
  std::vector<std::uint64_t> words = my_words();
  collectives::unite(group(GroupKind::kWorld), words, parts_.watch, place("exchange"));
  take_words(words);
  judge(not_finite(losses_));
}

/// What this rank knows of a step, zeros for the rest: the weight of each loss that has one; sums
/// by global microbatch and loss; a bit for each parameter that a backward reached; the samples of its replicas.
std::vector<std::uint64_t> RankOperations::my_words() const {
  const std::size_t num_losses = parts_.recording.graph.losses.size();
  const std::size_t num_rows = 1 + parts_.plan.batch.num_microbatches();
  const std::size_t num_flags = (parameters_.size() + kWordBits - 1) / kWordBits;
  const int num_replicas = layout::train_role(parts_.plan).mesh.data;
  std::vector<std::uint64_t> words(num_rows * num_losses + num_flags + num_replicas);
  std::uint64_t* samples = &words[words.size() - num_replicas + parts_.place.first_replica];
  for (const int loss : parts_.stages.weighed_losses()) {
    words[loss] = std::bit_cast<std::uint64_t>(totals_[loss]);
  }
  for (int m = 0; m < input_->num_microbatches(); ++m) {
    samples[m / parts_.program.num_microbatches] += input_->sizes[m].samples;
    const std::size_t row = input_->index_of(m);
    for (const int loss : parts_.stages.losses()) {
      words[(1 + row) * num_losses + loss] =
          std::bit_cast<std::uint64_t>(parts_.stages.loss_sum(m, loss));
    }
  }
  for (int site = 0; site < parts_.sums.num_sites(); ++site) {
    if (!parts_.sums.has_reached(site)) continue;
    const std::size_t flag = parameters_.at(parts_.sums.parameter_of(site));
    words[num_rows * num_losses + flag / kWordBits] |= std::uint64_t{1} << flag % kWordBits;
  }
  return words;
}

/// Sums are added in global microbatch order.
void RankOperations::take_words(std::span<const std::uint64_t> words) {
  losses_ = program::empty_losses(parts_.recording.graph);
  if (counts_) program::report_only(losses_, counts_in_step());
  const std::size_t num_losses = losses_.losses.size();
  const std::size_t num_rows = 1 + parts_.plan.batch.num_microbatches();
  microbatch_sums_.assign(num_rows - 1, std::vector<double>(num_losses));
  for (std::size_t i = 0; i < num_losses; ++i) {
    LossTotal& loss = losses_.losses[i];
    const bool has_weight = parts_.recording.graph.losses[i].weight.has_value();
    loss.weight = has_weight ? std::bit_cast<double>(words[i]) : totals_[i];
    for (std::size_t row = 1; row < num_rows; ++row) {
      microbatch_sums_[row - 1][i] = std::bit_cast<double>(words[row * num_losses + i]);
      loss.sum += microbatch_sums_[row - 1][i];
    }
  }
  require_as_many(words.last(layout::train_role(parts_.plan).mesh.data));
  const auto flags = words.subspan(num_rows * num_losses);
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    reached_[i] = (flags[i / kWordBits] >> i % kWordBits & 1) != 0;
  }
}

void RankOperations::run(const schedule::Operation& operation) {
  if (ValueShards::is_about(operation)) return values_->run(operation, place("gather values"));
  switch (operation.kind) {
    case OperationKind::kWeigh:
      return weigh();
    case OperationKind::kReduce:
      return reduce(operation.item);
    case OperationKind::kJoin:
      return join(operation.item);
    case OperationKind::kExchange:
      return exchange();
    case OperationKind::kTieSum:
      return parts_.sums.end_step(remote_sites_);
    case OperationKind::kCommit:
      return commit();
    case OperationKind::kNorm:
      return norm();
    case OperationKind::kUpdate:
      return update();
    case OperationKind::kGather:
      return gather_values(operation.item);
    default:
      TRIREME_CHECK(false, "an operation that is not the rank's");
  }
}

std::span<std::byte> RankOperations::tie_memory(const schedule::Channel& channel, int item) {
  const bool sends = channel.from_rank == parts_.rank;
  if (channel.kind == ChannelKind::kTieValue) {
    return bytes_of(parts_.store.flat_value(parts_.recording.graph.parameters[item].name));
  }
  if (sends) return bytes_of(parts_.sums.site_sum(item));
  at::Tensor& sum = remote_sites_[item];
  if (!sum.defined()) {
    const std::string& name = parts_.sums.parameter_of(item);
    const parameters::SlotPlace owner = parts_.store.owner(name);
    sum = at::empty_like(parts_.sums.gradients()
                             .flat(owner.bucket)
                             .narrow(0, 0, parts_.store.slot(owner).num_elements));
  }
  return bytes_of(sum);
}

/// Statistics of all replicas, then the commits that every rank makes alike.
void RankOperations::commit() {
  if (loss_scale_.is_on()) end_scaled_step();
  auto statistics = parts_.stages.take_statistics();
  const int num_ranks = parts_.place.num_ranks;
  if (num_ranks > 1 && has_statistics(statistics)) {
    const std::vector<std::byte> all =
        gather(GroupKind::kData, to_bytes(statistics), "commit statistics");
    statistics = from_bytes(all, statistics, num_ranks);
  }
  if (!is_skipped_) {
    commits_.fold(statistics);
    commits_.count(input_->num_present() * num_ranks);
  }
  collectives::Group& replicas = group(GroupKind::kData);
  buffers_.combine(replicas,
                   [&](transport::Work& work, const char* what) { wait(work, replicas, what); });
}

/// Losses were exchanged and norms united, so that every rank decides alike.
void RankOperations::end_scaled_step() {
  is_skipped_ = !loss_scale_.end_step(overflow_, input_->step);
}

/// Every rank gives the norms of what it owns, in the places of all parameters by name.
void RankOperations::norm() {
  loss_scale_.unscale(parts_.sums.gradients());
  const auto own = parameters::square_norms(parts_.store, parts_.sums.gradients(), moved(), part_);
  std::vector<std::uint64_t> words;
  for (const auto& [name, index] : parameters_) {
    const auto found = own.find(name);
    words.push_back(found == own.end() ? 0 : std::bit_cast<std::uint64_t>(found->second));
  }
  collectives::unite(group(GroupKind::kPipeline), words, parts_.watch, place("norm"));
  parameters::SquareNorms norms;
  const parameters::HasGradient is_moved = moved();
  auto word = words.begin();
  for (const auto& [name, index] : parameters_) {
    const double square = std::bit_cast<double>(*word++);
    if (is_moved(name)) norms.emplace_hint(norms.end(), name, square);
  }
  judge(not_finite(norms));
  norm_ = parameters::global_norm(norms);
  const double most = options_.optimizer.clip_norm;
  if (most > 0) parameters::clip(parts_.sums.gradients(), norm_, most);
}

/// All ranks find the same problem: losses are exchanged, norms gathered, replicas alike.
void RankOperations::judge(const std::string& problem) {
  if (loss_scale_.is_on()) {
    if (overflow_.empty()) overflow_ = problem;
    return;
  }
  if (problem.empty() || has_warned_) return;
  if (!options_.allow_nonfinite) require_finite(problem, input_->step);
  has_warned_ = true;
  if (parts_.rank != 0) return;
  parts_.watch.logger.warning(problem + " in step " + std::to_string(input_->step) +
                              "; continuing, as --allow-nonfinite says; said once");
}

void RankOperations::update() {
  if (is_skipped_) return;
  const double rate = learning_rate_at(options_.optimizer, input_->step);
  parameters::apply(
      *optimizer_, parts_.store, parts_.sums.gradients(), moved(),
      [&](const std::string& name) { return rule_of(options_.optimizer, name, rate); }, part_);
}

namespace {

at::Tensor part_of(const at::Tensor& flat, const layout::Shard& shard) {
  return flat.narrow(0, shard.begin_elements, shard.end_elements - shard.begin_elements);
}

}  // namespace

void RankOperations::gather_values(int bucket) {
  const at::Tensor& flat = parts_.store.flat_values(bucket);
  const layout::Bucket& values = parts_.store.map().buckets[bucket];
  gather(part_of(flat, values.shards[*parts_.shards_of]), flat, bucket, "gather values");
}

void RankOperations::gather(const at::Tensor& mine, const at::Tensor& flat, int bucket,
                            const char* what) {
  collectives::Group& replicas = group(GroupKind::kData);
  const layout::Bucket& of = parts_.store.map().buckets[bucket];
  wait(*parameters::gather_shards(mine, flat, of, replicas), replicas, what);
}

void RankOperations::gather_gradients() {
  const std::vector<bool> scattered = layout::scattered_buckets(parts_.store.map(), parts_.plan);
  parameters::GradientBuffers& gradients = parts_.sums.gradients();
  for (int b = 0; b < static_cast<int>(scattered.size()); ++b) {
    const layout::Bucket& bucket = parts_.store.map().buckets[b];
    if (!scattered[b] || !parts_.store.holds(bucket.stage)) continue;
    const layout::Shard& shard = bucket.shards[*parts_.shards_of];
    const std::int64_t num = shard.end_elements - shard.begin_elements;
    const at::Tensor mine = gradients.elements(b, shard.begin_elements, num);
    gradients.make(bucket, b);
    gather(mine, gradients.flat(b), b, "gather gradients");
  }
}

void RankOperations::check_replicas() {
  attach_hashes();
  collectives::Group& replicas = group(GroupKind::kData);
  transport::await(collectives::group_work(*replicas.barrier(), replicas), parts_.watch,
                   {.rank = parts_.rank, .operation = "compare replicas"});
}

}  // namespace trireme::train
