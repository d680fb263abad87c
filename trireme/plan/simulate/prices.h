#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/schedule/step_program.h"
#include "trireme/plan/simulate/stage_cost.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::simulate {

/// What an operation takes.
struct Price {
  double work_us = 0;   ///< Of the rank's processor.
  double delay_us = 0;  ///< After that, beside compute: a message's way, a collective's rounds.
  double ready_us = 0;  ///< Of a reduction: work of the action that follows until it can start.
  /// Of a message; of a collective, that each rank sends each other one. 0 where the topology has no shared links.
  double bytes = 0;
  bool operator==(const Price&) const = default;
};

/// By world rank, by operation.
using Prices = std::vector<std::vector<Price>>;

/// What the prices of a step are made from.
struct PriceInputs {
  const graph::Graph& planned;
  const layout::Plan& plan;
  const layout::ParameterMap& map;
  const profile::Profile& profile;
  const topology::Topology& topology;
};

/// kInvalidArgument where the topology lacks a place of a rank of the plan.
void check_places(const layout::Plan& plan, const topology::Topology& topology);

/// Kind of the link between two ranks: `host` or `network`.
profile::LinkKind link_kind(const topology::Topology& topology, int a, int b);

/// Ranks that sum.
struct SumGroup {
  int num_ranks = 1;
  int ranks_per_host = 1;  ///< 1 also where hosts have different numbers of them.
  profile::LinkKind kind = profile::LinkKind::kHost;  ///< The slowest between any two.
};

/// ranks   in the order of the group: those of a host after one another.
SumGroup sum_group(const topology::Topology& topology, const std::vector<int>& ranks);

/// Microseconds that the sum of `bytes` takes, in the faster of two ways. Two hops, in each of which each of n ranks sends
/// (n-1)/n of the buffer; or, where h hosts have g ranks each, a power of two, also on two levels: (g-1)/g go twice within the
/// hosts, and (h-1)/h of a g-th twice between them.
double reduce_us(const profile::Profile& profile, const SumGroup& group, std::int64_t bytes);

/// Bytes of losses, flags and norms that ranks exchange once a step.
inline constexpr std::int64_t kSmallMessageBytes = 1024;

/// How a bucket is summed.
struct BucketSum {
  Dtype gradient_dtype = Dtype::kF32;  ///< TrainingOptions::gradient_dtype.
  bool is_scattered = false;           ///< Each rank has its part alone, which goes half the way.
};

/// Microseconds of that sum, additions and roundings included.
double bucket_us(const profile::Profile& profile, const SumGroup& group,
                 const layout::Bucket& bucket, const BucketSum& sum);

/// costs            by stage, from `stage_costs`.
/// gradient_dtype   TrainingOptions::gradient_dtype.
/// Errors   kInvalidArgument where the profile lacks a kind of link that the program uses; those of `check_places`.
Prices prices(const schedule::StepProgram& program, const std::vector<StageCost>& costs,
              const PriceInputs& inputs, Dtype gradient_dtype = Dtype::kF32);

}  // namespace trireme::simulate
