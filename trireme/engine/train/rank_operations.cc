#include "trireme/engine/train/rank_operations.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/engine/data_parallel/replica_check.h"
#include "trireme/engine/program/buffer_commit.h"
#include "trireme/engine/train/finite.h"
#include "trireme/engine/train/norm_messages.h"
#include "trireme/engine/train/world.h"
#include "trireme/plan/graph/index.h"
#include "trireme/plan/layout/manual.h"

namespace trireme::train {
namespace {

using schedule::ChannelKind;
using schedule::GroupKind;
using schedule::OperationKind;

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

std::vector<int> stages_of_losses(const graph::Graph& graph, const layout::Plan& plan) {
  const auto positions = graph::node_positions(graph);
  std::vector<int> result;
  for (const graph::Loss& loss : graph.losses) {
    result.push_back(layout::stage_of(plan, positions.at(graph.values[loss.value].producer)));
  }
  return result;
}

std::string name_of(const schedule::Group& group) {
  if (group.kind == GroupKind::kWorld) return "world";
  return (group.kind == GroupKind::kData ? "data " : "pipeline ") + std::to_string(group.index);
}

}  // namespace

Groups make_groups(const schedule::StepProgram& program, const World& world) {
  Groups groups;
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    const schedule::Group& group = program.groups[g];
    const auto& ranks = group.ranks;
    if (std::find(ranks.begin(), ranks.end(), world.rank()) == ranks.end()) continue;
    groups[static_cast<int>(g)] = std::make_unique<collectives::Group>(
        world.endpoint, ranks,
        collectives::GroupOptions{.name = name_of(group),
                                  .id = g,
                                  .deadline = world.watch.deadline,
                                  .logger = world.watch.logger,
                                  .costs = world.costs});
  }
  return groups;
}

collectives::Group& group_of(const schedule::StepProgram& program, const Groups& groups,
                             GroupKind kind) {
  for (const auto& [index, group] : groups) {
    if (program.groups[index].kind == kind) return *group;
  }
  TRIREME_CHECK(false, "the rank is in no group of the kind");
}

RankOperations::RankOperations(const RankParts& parts, const SessionOptions& options)
    : parts_(parts),
      options_(options),
      optimizer_(make_optimizer(options.optimizer)),
      loss_stages_(stages_of_losses(parts.recording.graph, parts.plan)),
      weighs_(parts.program.ranks[parts.rank].front().kind == OperationKind::kWeigh) {
  optim::check_parameters(*optimizer_, parts.store);
  if (layout::train_role(parts.plan).mesh.data == 1) return;
  reducer_ = std::make_unique<data_parallel::Reducer>(parts.sums, group(GroupKind::kData));
}

collectives::Group& RankOperations::group(GroupKind kind) const {
  return group_of(parts_.program, parts_.groups, kind);
}

void RankOperations::wait(transport::Work& work, const collectives::Group& group,
                          const char* what) const {
  transport::await(collectives::group_work(work, group), parts_.watch,
                   {.rank = parts_.rank, .operation = what, .step = input_->step});
}

void RankOperations::begin_step(pipeline::StepInput& input) {
  input_ = &input;
  // Without weights of their own, losses weigh the same on every replica.
  std::vector<std::vector<double>> all;
  for (int replica = 0; replica < group(GroupKind::kData).size(); ++replica) {
    all.insert(all.end(), input.weights.begin(), input.weights.end());
  }
  if (!weighs_) input.totals = program::total_weights(parts_.recording.graph, all);
  norm_ = 0;
  reached_.clear();
  is_last_ = false;
  parts_.sums.begin_step();
  if (reducer_) reducer_->begin_step();
}

/// The weights of all replicas, in global microbatch order.
void RankOperations::weigh() {
  const std::size_t num_losses = parts_.recording.graph.losses.size();
  std::vector<double> mine;
  for (const auto& weights : input_->weights)
    mine.insert(mine.end(), weights.begin(), weights.end());
  const auto bytes = gather(GroupKind::kData, std::as_bytes(std::span(mine)), "weigh");
  std::vector<std::vector<double>> all(bytes.size() / (num_losses * sizeof(double)),
                                       std::vector<double>(num_losses));
  for (std::size_t m = 0; m < all.size(); ++m) {
    const std::size_t row_bytes = num_losses * sizeof(double);
    std::memcpy(all[m].data(), bytes.data() + m * row_bytes, row_bytes);
  }
  input_->totals = program::total_weights(parts_.recording.graph, all);
}

void RankOperations::end_backward(int microbatch) {
  if ((microbatch + 1) % parts_.plan.batch.microbatches_per_lane() == 0) parts_.sums.end_lane();
}

void RankOperations::reduce(int bucket) {
  if (!is_last_) {
    parts_.sums.begin_last_microbatch([this](int complete) { reducer_->on_sum(complete); });
  }
  is_last_ = true;
  reducer_->expect(bucket);
}

void RankOperations::join(int bucket) {
  wait(*reducer_->work(bucket), group(GroupKind::kData), "join bucket");
}

std::vector<std::byte> RankOperations::gather(GroupKind kind, std::span<const std::byte> mine,
                                              const char* what) {
  collectives::Group& ranks = group(kind);
  std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(ranks.size()));
  wait(*ranks.all_gather(mine, all), ranks, what);
  return all;
}

/// A rank gives, by microbatch and loss, sum and weight, then 1 for each site that it reached.
void RankOperations::exchange() {
  const std::size_t num_losses = loss_stages_.size();
  std::vector<double> mine;
  for (std::size_t m = 0; m < input_->weights.size(); ++m) {
    for (std::size_t i = 0; i < num_losses; ++i) {
      mine.push_back(parts_.worker.loss_sums()[m][i]);
      mine.push_back(input_->weights[m][i]);
    }
  }
  const std::size_t num_numbers = mine.size();
  for (int site = 0; site < parts_.sums.num_sites(); ++site) {
    mine.push_back(parts_.sums.has_reached(site) ? 1 : 0);
  }
  const auto bytes = gather(GroupKind::kWorld, std::as_bytes(std::span(mine)), "exchange");
  std::vector<double> all(bytes.size() / sizeof(double));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  take_losses(all, mine.size());
  judge(not_finite(losses_));
  for (std::size_t begin = 0; begin < all.size(); begin += mine.size()) {
    for (int site = 0; site < parts_.sums.num_sites(); ++site) {
      if (all[begin + num_numbers + site] != 0) reached_.insert(parts_.sums.parameter_of(site));
    }
  }
}

/// Added in global microbatch order: replica after replica.
void RankOperations::take_losses(const std::vector<double>& all, std::size_t per_rank) {
  losses_ = program::empty_losses(parts_.recording.graph);
  const layout::Role& role = layout::train_role(parts_.plan);
  for (std::size_t i = 0; i < loss_stages_.size(); ++i) {
    for (int replica = 0; replica < role.mesh.data; ++replica) {
      const int position = loss_stages_[i] * role.mesh.data + replica;  // the world's group order
      for (std::size_t m = 0; m < input_->weights.size(); ++m) {
        const double* pair =
            &all[static_cast<std::size_t>(position) * per_rank + 2 * (m * loss_stages_.size() + i)];
        losses_.losses[i].sum += pair[0];
        losses_.losses[i].weight += pair[1];
      }
    }
  }
}

void RankOperations::run(OperationKind kind) {
  switch (kind) {
    case OperationKind::kWeigh:
      return weigh();
    case OperationKind::kTieSum:
      return parts_.sums.end_step(remote_sites_);
    case OperationKind::kCommit:
      return commit();
    case OperationKind::kNorm:
      return norm();
    case OperationKind::kUpdate:
      return update();
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

/// Statistics of all replicas, then the commits that every replica makes alike.
void RankOperations::commit() {
  auto statistics = parts_.worker.take_statistics();
  const int num_replicas = group(GroupKind::kData).size();
  if (num_replicas > 1 && has_statistics(statistics)) {
    const std::vector<std::byte> all =
        gather(GroupKind::kData, to_bytes(statistics), "commit statistics");
    statistics = from_bytes(all, statistics, num_replicas);
  }
  program::commit_batch_norms(parts_.recording, statistics);
  program::commit_counters(parts_.recording, parts_.plan.batch.num_microbatches(),
                           parts_.plan.batch.microbatch);
}

/// Every rank gives the norms of what it owns, in the places of all parameters by name.
void RankOperations::norm() {
  std::set<std::string> names;
  for (const graph::Parameter& parameter : parts_.recording.graph.parameters) {
    if (has_gradient(parameter.name)) names.insert(parameter.name);
  }
  const auto own =
      optim::square_norms(parts_.store, parts_.sums.gradients(),
                          [this](const std::string& name) { return has_gradient(name); });
  std::vector<double> mine;
  for (const std::string& name : names) {
    const auto found = own.find(name);
    mine.push_back(found == own.end() ? -1 : found->second);
  }
  const auto bytes = gather(GroupKind::kPipeline, std::as_bytes(std::span(mine)), "norm");
  std::vector<double> all(bytes.size() / sizeof(double));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  optim::SquareNorms norms;
  for (std::size_t i = 0; i < all.size(); ++i) {
    // NaN comes through: it is not below 0.
    if (!(all[i] < 0)) norms[*std::next(names.begin(), i % mine.size())] = all[i];
  }
  judge(not_finite(norms));
  norm_ = optim::global_norm(norms);
  const double most = options_.optimizer.clip_norm;
  if (most > 0) optim::clip(parts_.sums.gradients(), norm_, most);
}

/// All ranks find the same problem: losses are exchanged, norms gathered, replicas alike.
void RankOperations::judge(const std::string& problem) {
  if (problem.empty() || has_warned_) return;
  if (!options_.allow_nonfinite) require_finite(problem, input_->step);
  has_warned_ = true;
  if (parts_.rank != 0) return;
  parts_.watch.logger.warning(problem + " in step " + std::to_string(input_->step) +
                              "; goes on, as --allow-nonfinite says; said once");
}

void RankOperations::update() {
  optim::apply(
      *optimizer_, parts_.store, parts_.sums.gradients(),
      [this](const std::string& name) { return has_gradient(name); },
      learning_rate_at(options_.optimizer, input_->step));
  if (reducer_) data_parallel::attach_value_hashes(parts_.store, group(GroupKind::kData));
}

void RankOperations::check_replicas() {
  collectives::Group& replicas = group(GroupKind::kData);
  transport::await(collectives::group_work(*replicas.barrier(), replicas), parts_.watch,
                   {.rank = parts_.rank, .operation = "compare replicas"});
}

}  // namespace trireme::train
