#include "trireme/plan/simulate/prices.h"

#include <algorithm>
#include <map>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/simulate/rank_elements.h"
#include "trireme/plan/simulate/rank_memory.h"
#include "trireme/plan/simulate/stage_cost.h"

namespace trireme::simulate {
namespace {

using schedule::ActionKind;
using schedule::ChannelKind;
using schedule::Operation;
using schedule::OperationKind;

class Pricer {
 public:
  Pricer(const schedule::StepProgram& program, const std::vector<StageCost>& costs,
         const PriceInputs& inputs, Dtype gradient_dtype)
      : program_(program),
        costs_(costs),
        inputs_(inputs),
        gradient_dtype_(gradient_dtype),
        sites_(graph::use_sites(inputs.planned)),
        scattered_(layout::scattered_buckets(inputs.map, inputs.plan)),
        elements_(rank_elements(inputs.plan, inputs.map)),
        ready_(bucket_completions(inputs.planned, inputs.plan, inputs.map, inputs.profile)) {
    for (const schedule::RankGroup& group : program.groups) {
      link_kinds_.push_back(group_link_kind(inputs.topology, group.ranks));
      if (group.kind != schedule::GroupKind::kData) continue;
      for (std::size_t r = 0; r < group.ranks.size(); ++r) {
        place_of_[group.ranks[r]] = {group.index, static_cast<int>(r)};
      }
    }
  }

  Price price(int rank, std::size_t index) const {
    const Operation& operation = program_.ranks[rank][index];
    const schedule::OperationRow& row = schedule::row_of(operation.kind);
    const bool is_reduce = operation.kind == OperationKind::kReduce;
    return {work_us(row.work, rank, operation), traffic_us(row.traffic, operation),
            is_reduce ? ready_us(rank, index) : 0};
  }

 private:
  /// Work of the action after a reduction, until its bucket is complete.
  double ready_us(int rank, std::size_t index) const {
    const std::vector<Operation>& operations = program_.ranks[rank];
    const int bucket = operations[index].item;
    while (index < operations.size() && operations[index].kind == OperationKind::kReduce) ++index;
    if (index == operations.size() || operations[index].kind != OperationKind::kCompute) return 0;
    return ready_[bucket] * action_us(operations[index].action);
  }

  const profile::StepCosts& step() const { return inputs_.profile.step; }
  const RankElements& elements(int rank) const {
    const auto& [position, replica] = place_of_.at(rank);
    return elements_[replica][position];
  }

  double work_us(schedule::ProcessorWork work, int rank, const Operation& operation) const {
    switch (work) {
      case schedule::ProcessorWork::kNothing:
        return 0;
      case schedule::ProcessorWork::kAction:
        return action_us(operation.action);
      case schedule::ProcessorWork::kCopy:
        return static_cast<double>(message_bytes(operation)) * step().copy_ns_per_byte / 1000;
      case schedule::ProcessorWork::kFold:
        return static_cast<double>(elements(rank).owned) * step().fold_ns / 1000;
      case schedule::ProcessorWork::kFoldTies:
        return static_cast<double>(elements(rank).further_sites) * step().fold_ns / 1000;
      case schedule::ProcessorWork::kUpdate:
        return static_cast<double>(elements(rank).owned) * step().optimizer_ns / 1000;
      case schedule::ProcessorWork::kWrite:
        return offloaded_bytes(operation) * step().file.value().write_ns_per_byte / 1000;
      case schedule::ProcessorWork::kRead:
        return offloaded_bytes(operation) * step().file.value().read_ns_per_byte / 1000;
    }
    return 0;
  }

  double offloaded_bytes(const Operation& operation) const {
    return static_cast<double>(costs_[operation.action.stage].offloaded_bytes);
  }

  double traffic_us(schedule::Traffic traffic, const Operation& operation) const {
    switch (traffic) {
      case schedule::Traffic::kNothing:
        return 0;
      case schedule::Traffic::kMessage:
        return send_us(operation);
      case schedule::Traffic::kBucket:
        return bucket_us(operation);
      case schedule::Traffic::kValues:
        return values_us(operation);
      case schedule::Traffic::kFewBytes:
        return group_us(operation.group, kSmallMessageBytes);
    }
    return 0;
  }

  double action_us(const schedule::Action& action) const {
    const StageCost& cost = costs_[action.stage];
    switch (action.kind) {
      case ActionKind::kForward:
        return cost.forward_us;
      case ActionKind::kBackward:
        return cost.backward_us();
      case ActionKind::kBackwardInput:
        return cost.input_us;
      case ActionKind::kBackwardWeight:
        return cost.weight_us;
    }
    return 0;
  }

  std::int64_t message_bytes(const Operation& operation) const {
    const int item = operation.item;
    const graph::Graph& graph = inputs_.planned;
    const std::int64_t microbatch = inputs_.plan.batch.microbatch;
    switch (program_.channels[operation.channel].kind) {
      case ChannelKind::kValue:
        return span_bytes(graph.values[item], microbatch);
      case ChannelKind::kGradient:
        return graph::bytes_at(graph.values[item], microbatch);
      case ChannelKind::kTieGradient: {
        const graph::Value& value = graph.values[graph.parameters[sites_[item].parameter].value];
        return graph::num_elements_at(value, 0) * gradient_bytes_per_element(value.dtype);
      }
      case ChannelKind::kTieValue:
        return graph::bytes_at(graph.values[graph.parameters[item].value], 0);
    }
    return 0;
  }

  double send_us(const Operation& operation) const {
    const schedule::Channel& channel = program_.channels[operation.channel];
    if (channel.from_rank == channel.to_rank) return 0;
    const profile::LinkKind kind = link_kind(inputs_.topology, channel.from_rank, channel.to_rank);
    return profile::link_us(inputs_.profile, kind, message_bytes(operation), true);
  }

  double group_us(int group, std::int64_t bytes) const {
    if (group < 0) return 0;
    return reduce_us(inputs_.profile, link_kinds_[group], bytes,
                     static_cast<int>(program_.groups[group].ranks.size()));
  }

  double bucket_us(const Operation& operation) const {
    const std::vector<int>& ranks = program_.groups[operation.group].ranks;
    return simulate::bucket_us(inputs_.profile, link_kinds_[operation.group],
                               inputs_.map.buckets[operation.item],
                               {.num_ranks = static_cast<int>(ranks.size()),
                                .gradient_dtype = gradient_dtype_,
                                .is_scattered = scattered_[operation.item]});
  }

  /// Half of an all_reduce's way: parts come, and are not summed.
  double values_us(const Operation& operation) const {
    const layout::Bucket& bucket = inputs_.map.buckets[operation.item];
    return group_us(operation.group,
                    bucket.num_elements * static_cast<std::int64_t>(size_bytes(bucket.dtype))) /
           2;
  }

  const schedule::StepProgram& program_;
  const std::vector<StageCost>& costs_;
  const PriceInputs& inputs_;
  Dtype gradient_dtype_;
  std::vector<graph::UseSite> sites_;
  std::vector<bool> scattered_;                      ///< By bucket.
  std::vector<std::vector<RankElements>> elements_;  ///< By replica, by position.
  std::vector<double> ready_;                        ///< By bucket.
  std::map<int, std::pair<int, int>> place_of_;      ///< Position and replica, by world rank.
  std::vector<profile::LinkKind> link_kinds_;        ///< Slowest of each group.
};

}  // namespace

void check_places(const layout::Plan& plan, const topology::Topology& topology) {
  const std::size_t num_ranks = 1 + std::ranges::max(layout::train_role(plan).placement);
  if (num_ranks <= topology.ranks.size()) return;
  throw Error(ErrorKind::kInvalidArgument, "the plan places " + std::to_string(num_ranks) +
                                               " ranks, but the topology has " +
                                               std::to_string(topology.ranks.size()));
}

profile::LinkKind link_kind(const topology::Topology& topology, int a, int b) {
  return topology.ranks[a].host == topology.ranks[b].host ? profile::LinkKind::kHost
                                                          : profile::LinkKind::kNetwork;
}

double reduce_us(const profile::Profile& profile, profile::LinkKind kind, std::int64_t bytes,
                 int num_ranks) {
  if (num_ranks < 2) return 0;
  const std::int64_t sent = bytes / num_ranks * (num_ranks - 1);
  return 2 * profile::link_us(profile, kind, sent, true);
}

profile::LinkKind group_link_kind(const topology::Topology& topology,
                                  const std::vector<int>& ranks) {
  for (const int rank : ranks) {
    const profile::LinkKind kind = link_kind(topology, ranks.front(), rank);
    if (kind != profile::LinkKind::kHost) return kind;
  }
  return profile::LinkKind::kHost;
}

double bucket_us(const profile::Profile& profile, profile::LinkKind kind,
                 const layout::Bucket& bucket, const BucketSum& sum) {
  const std::int64_t sent = sent_bytes_per_element(bucket.dtype, sum.gradient_dtype);
  const auto n = static_cast<double>(sum.num_ranks);
  const auto elements = static_cast<double>(bucket.num_elements);
  // To round them and to widen the result moves as many bytes as a fold.
  const double roundings = sent == gradient_bytes_per_element(bucket.dtype) ? 0 : elements;
  const double folds = elements * (n - 1) / n + roundings;
  const double way_us = reduce_us(profile, kind, bucket.num_elements * sent, sum.num_ranks);
  return (sum.is_scattered ? way_us / 2 : way_us) + folds * profile.step.fold_ns / 1000;
}

Prices prices(const schedule::StepProgram& program, const std::vector<StageCost>& costs,
              const PriceInputs& inputs, Dtype gradient_dtype) {
  check_places(inputs.plan, inputs.topology);
  const Pricer pricer(program, costs, inputs, gradient_dtype);
  Prices result(program.ranks.size());
  for (std::size_t rank = 0; rank < result.size(); ++rank) {
    for (std::size_t i = 0; i < program.ranks[rank].size(); ++i) {
      result[rank].push_back(pricer.price(static_cast<int>(rank), i));
    }
  }
  return result;
}

}  // namespace trireme::simulate
