#include "trireme/plan/partition/front.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/partition/candidate.h"

namespace trireme::partition {
namespace {

/// Sizes of memory between the least and the most that plans take.
constexpr int kNumSizes = 6;

/// Of each search; of those whose estimates cost most, of several stages on a rank.
constexpr double kEffort = 1.0 / 2, kLittleEffort = 1.0 / 256;

/// Steps that differ by less count as the same: no forecast is so exact.
constexpr double kSameStep = 1.001;

std::int64_t peak_of(const layout::Plan& plan) {
  return layout::largest_peak_bytes(plan.prediction->peak_bytes);
}

double step_of(const layout::Plan& plan) { return plan.prediction->step_ms; }

/// All combinations that `options` leaves open, without a limit of memory but the machine's.
std::vector<PartitionOptions> combinations(const FrontOptions& options, int num_ranks) {
  std::vector<PartitionOptions> all;
  for (const int each : options.stages_per_rank) {
    PartitionOptions one = options.plan;
    one.objective = Objective::kSpeed;
    one.stages_per_rank = each;
    one.effort *= each > 1 ? kLittleEffort : kEffort;
    for (const int replicas : possible_replicas(one, num_ranks)) {
      one.replicas = replicas;
      all.push_back(one);
    }
  }
  return all;
}

/// The same stages and schedule, with what replicas can share.
std::vector<PartitionOptions> sharded(const layout::Plan& plan, PartitionOptions options) {
  if (layout::train_role(plan).mesh.data == 1 || options.shard_parameters) return {};
  options.stages = static_cast<int>(plan.stages.size());
  options.schedule = plan.schedule.name;
  options.cuts.clear();
  for (std::size_t s = 1; s < plan.stages.size(); ++s) {
    options.cuts.push_back(plan.stages[s].begin);
  }
  std::vector<PartitionOptions> all;
  if (!options.shard_state) {
    options.shard_state = true;
    all.push_back(options);
  }
  options.shard_parameters = true;
  all.push_back(options);
  return all;
}

/// The plans that were found, and why there are none.
class Collection {
 public:
  Collection(const graph::Graph& recorded, const profile::Profile& profile,
             const topology::Topology& topology, bool may_shard)
      : recorded_(recorded), profile_(profile), topology_(topology), may_shard_(may_shard) {}

  /// The plan that these ask for; without copied nodes also with what replicas can share.
  void add(PartitionOptions options) {
    if (options.may_copy) add_one(options);
    options.may_copy = false;
    const std::size_t before = plans_.size();
    add_one(options);
    if (!may_shard_ || plans_.size() == before) return;
    const layout::Plan plan = plans_.back();
    for (const PartitionOptions& one : sharded(plan, options)) add_one(one);
  }

  const std::vector<layout::Plan>& plans() const { return plans_; }

  /// The plans that none beats, by step.
  std::vector<layout::Plan> front() {
    if (plans_.empty() && failure_) throw Error(*failure_);
    std::stable_sort(plans_.begin(), plans_.end(), [](const auto& a, const auto& b) {
      return std::pair(step_of(a), peak_of(a)) < std::pair(step_of(b), peak_of(b));
    });
    std::vector<layout::Plan> best;
    for (const layout::Plan& plan : plans_) {
      if (!best.empty() && peak_of(plan) >= peak_of(best.back())) continue;
      if (!best.empty() && step_of(plan) <= kSameStep * step_of(best.back())) best.pop_back();
      best.push_back(plan);
    }
    return best;
  }

 private:
  void add_one(const PartitionOptions& options) {
    try {
      plans_.push_back(partition(recorded_, profile_, topology_, options));
    } catch (const Error& error) {
      const bool lacks_memory = error.kind() == ErrorKind::kResourceExhausted;
      if (!failure_ || lacks_memory) failure_ = error;
    }
  }

  const graph::Graph& recorded_;
  const profile::Profile& profile_;
  const topology::Topology& topology_;
  bool may_shard_;
  std::vector<layout::Plan> plans_;
  std::optional<Error> failure_;
};

/// The fastest, and those of least memory.
void add_ends(Collection& collection, const PartitionOptions& options) {
  collection.add(options);
  PartitionOptions smallest = options;
  smallest.objective = Objective::kMemory;
  smallest.max_slowdown = kUnlimited;
  collection.add(smallest);
  if (options.recompute != Recompute::kAuto) return;
  for (const Recompute recompute : {Recompute::kAll, Recompute::kRegions}) {
    smallest.recompute = recompute;
    collection.add(smallest);
  }
}

/// What each rank surely has.
std::int64_t memory_of_all(const topology::Topology& topology, const PartitionOptions& options) {
  if (options.device_memory_bytes > 0) return options.device_memory_bytes;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const topology::RankPlace& rank : topology.ranks) {
    least = std::min(least, rank.memory_bytes);
  }
  return least;
}

/// Sizes between the least and the largest peak, by equal ratios, of at most `limit`.
std::vector<std::int64_t> sizes_between(const std::vector<layout::Plan>& plans,
                                        std::int64_t limit) {
  if (plans.empty()) return {};
  const auto less = [](const auto& a, const auto& b) { return peak_of(a) < peak_of(b); };
  const auto [least, most] = std::minmax_element(plans.begin(), plans.end(), less);
  const auto from = static_cast<double>(peak_of(*least)), to = static_cast<double>(peak_of(*most));
  std::vector<std::int64_t> sizes;
  for (int i = 1; i <= kNumSizes && from < to; ++i) {
    const double part = static_cast<double>(i) / (kNumSizes + 1);
    const auto size = static_cast<std::int64_t>(from * std::pow(to / from, part));
    if (size <= limit) sizes.push_back(size);
  }
  return sizes;
}

std::vector<std::int64_t> peaks_of_recomputing(const std::vector<layout::Plan>& plans) {
  std::vector<std::int64_t> peaks;
  for (const layout::Plan& plan : plans) {
    if (std::ranges::any_of(plan.stages, &layout::Stage::recompute)) peaks.push_back(peak_of(plan));
  }
  return peaks;
}

}  // namespace

std::vector<layout::Plan> front(const graph::Graph& recorded, const profile::Profile& profile,
                                const topology::Topology& topology, const FrontOptions& options) {
  Collection collection(recorded, profile, topology, options.may_shard);
  const auto all = combinations(options, static_cast<int>(topology.ranks.size()));
  for (const PartitionOptions& one : all) add_ends(collection, one);
  const std::int64_t limit = memory_of_all(topology, options.plan);
  for (const std::int64_t size : sizes_between(collection.plans(), limit)) {
    for (PartitionOptions one : all) {
      one.device_memory_bytes = size;
      collection.add(one);
    }
  }
  // Cuts of those that recompute were searched for stages that keep all: in so much memory another plan may be faster.
  for (const std::int64_t size : peaks_of_recomputing(collection.front())) {
    for (PartitionOptions one : all) {
      one.device_memory_bytes = size;
      collection.add(one);
    }
  }
  std::vector<layout::Plan> best = collection.front();
  if (best.empty()) return {partition_over_replicas(recorded, profile, topology, options.plan)};
  return best;
}

}  // namespace trireme::partition
