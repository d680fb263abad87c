#include "trireme/plan/simulate/prices.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

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
      groups_.push_back(sum_group(inputs.topology, group.ranks));
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
    const double speed = inputs_.topology.ranks[rank].speed;
    return {work_us(row.work, rank, operation) / speed, traffic_us(row.traffic, operation),
            is_reduce ? ready_us(rank, index) / speed : 0,
            inputs_.topology.shared_links.empty() ? 0 : traffic_bytes(row.traffic, operation)};
  }

 private:
  /// Price::bytes; a sum goes two ways, of parts and of results.
  double traffic_bytes(schedule::Traffic traffic, const Operation& operation) const {
    if (traffic == schedule::Traffic::kNothing) return 0;
    if (traffic == schedule::Traffic::kMessage)
      return static_cast<double>(message_bytes(operation));
    if (operation.group < 0) return 0;
    const auto n = static_cast<double>(groups_[operation.group].num_ranks);
    if (traffic == schedule::Traffic::kFewBytes) return 2 * kSmallMessageBytes / n;
    const layout::Bucket& bucket = inputs_.map.buckets[operation.item];
    const auto elements = static_cast<double>(bucket.num_elements);
    if (traffic == schedule::Traffic::kValues)
      return elements * static_cast<double>(size_bytes(bucket.dtype)) / n;
    const auto sent = static_cast<double>(sent_bytes_per_element(bucket.dtype, gradient_dtype_));
    return elements * sent * (scattered_[operation.item] ? 1 : 2) / n;
  }

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
        return copy_us(operation);
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

  double copy_us(const Operation& operation) const {
    const schedule::Channel& channel = program_.channels[operation.channel];
    const std::int64_t bytes = message_bytes(operation);
    return channel.from_rank == channel.to_rank ? profile::copy_us(step(), bytes)
                                                : profile::message_work_us(step(), bytes);
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
        return cost.forward_us + cost.read_us;
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
    return reduce_us(inputs_.profile, groups_[group], bytes);
  }

  double bucket_us(const Operation& operation) const {
    return simulate::bucket_us(
        inputs_.profile, groups_[operation.group], inputs_.map.buckets[operation.item],
        {.gradient_dtype = gradient_dtype_, .is_scattered = scattered_[operation.item]});
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
  std::vector<SumGroup> groups_;                     ///< As the program has them.
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

SumGroup sum_group(const topology::Topology& topology, const std::vector<int>& ranks) {
  std::vector<int> hosts, sizes;
  for (const int rank : ranks) {
    const int host = topology.ranks[rank].host;
    if (hosts.empty() || hosts.back() != host) {
      hosts.push_back(host);
      sizes.push_back(0);
    }
    ++sizes.back();
  }
  SumGroup group{.num_ranks = static_cast<int>(ranks.size())};
  if (hosts.size() < 2) return group;
  group.kind = profile::LinkKind::kNetwork;
  const bool come_once = std::set(hosts.begin(), hosts.end()).size() == hosts.size();
  const bool are_equal = std::ranges::count(sizes, sizes.front()) == std::ssize(sizes);
  if (come_once && are_equal) group.ranks_per_host = sizes.front();
  return group;
}

namespace {

/// Each of `num_ranks` sends all of its part of `bytes` but one twice.
double two_hops_us(const profile::Profile& profile, profile::LinkKind kind, std::int64_t bytes,
                   int num_ranks) {
  return 2 * profile::link_us(profile, kind, bytes / num_ranks * (num_ranks - 1), true);
}

}  // namespace

double reduce_us(const profile::Profile& profile, const SumGroup& group, std::int64_t bytes) {
  if (group.num_ranks < 2) return 0;
  const double flat_us = two_hops_us(profile, group.kind, bytes, group.num_ranks);
  const int each = group.ranks_per_host;
  if (each < 2 || !std::has_single_bit(static_cast<unsigned>(each))) return flat_us;
  return std::min(flat_us, two_hops_us(profile, profile::LinkKind::kHost, bytes, each) +
                               two_hops_us(profile, profile::LinkKind::kNetwork, bytes / each,
                                           group.num_ranks / each));
}

double bucket_us(const profile::Profile& profile, const SumGroup& group,
                 const layout::Bucket& bucket, const BucketSum& sum) {
  const std::int64_t sent = sent_bytes_per_element(bucket.dtype, sum.gradient_dtype);
  const auto n = static_cast<double>(group.num_ranks);
  const auto elements = static_cast<double>(bucket.num_elements);
  // To round them and to widen the result moves as many bytes as a fold.
  const double roundings = sent == gradient_bytes_per_element(bucket.dtype) ? 0 : elements;
  const double folds = elements * (n - 1) / n + roundings;
  const double way_us = reduce_us(profile, group, bucket.num_elements * sent);
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
