#include "trireme/plan/partition/fitting_changes.h"

#include <algorithm>
#include <cstdio>

#include "trireme/plan/schedule/schedules.h"

namespace trireme::partition {
namespace {

constexpr double kPartOfEffort = 1.0 / 8;

class Tries {
 public:
  Tries(const profile::Profile& profile, const topology::Topology& topology,
        const PartitionOptions& options, const FindPlan& find_plan)
      : profile_(profile), topology_(topology), options_(options), find_plan_(find_plan) {
    options_.effort *= kPartOfEffort;
  }

  std::vector<FittingChange> all() && {
    try_memory();
    try_order();
    try_shards();
    if (changes_.empty()) try_ranks();
    std::ranges::stable_sort(changes_, {}, &FittingChange::step_ms);
    return std::move(changes_);
  }

 private:
  /// What the plan says of it is told after the change.
  using Told = std::string (*)(const layout::Plan& plan);

  bool try_one(const std::string& change, const PartitionOptions& options, Told told = nullptr) {
    return try_on(topology_, change, options, told);
  }

  bool try_on(const topology::Topology& topology, const std::string& change,
              const PartitionOptions& options, Told told = nullptr) {
    const std::optional<layout::Plan> plan = find_plan_(topology, options);
    if (!plan) return false;
    changes_.push_back({change + (told == nullptr ? "" : told(*plan)), plan->prediction->step_ms});
    return true;
  }

  void try_memory() {
    PartitionOptions options = options_;
    options.recompute = Recompute::kAuto;
    if (options_.recompute == Recompute::kNone) try_one("--recompute auto", options);
    options = options_;
    options.offload = Offload::kAuto;
    const bool can_offload = profile_.step.file.has_value();
    if (options_.offload == Offload::kNone && can_offload) try_one("--offload auto", options);
  }

  void try_order() {
    const auto schedule = [](const layout::Plan& plan) { return plan.schedule.name; };
    const auto stages = [](const layout::Plan& plan) { return std::to_string(plan.stages.size()); };
    PartitionOptions options = options_;
    options.schedule.clear();
    if (!options_.schedule.empty()) try_one("--schedule ", options, schedule);
    if (options_.stages_per_rank == 1) {
      options.stages = 0;
      options.stages_per_rank = 2;
      try_one("--stages-per-rank 2 --schedule ", options, schedule);
    }
    options = options_;
    options.stages = 0;
    if (options_.stages > 0) try_one("--stages ", options, stages);
    try_active();
  }

  /// Half as many as there may be, until they do.
  void try_active() {
    PartitionOptions options = options_;
    const auto num_ranks = static_cast<int>(topology_.ranks.size());
    int active = options_.active_microbatches > 0 ? options_.active_microbatches : num_ranks;
    for (active /= 2; active > 0; active /= 2) {
      options.active_microbatches = active;
      if (try_one("--active-microbatches " + std::to_string(active), options)) return;
    }
  }

  void try_shards() {
    const auto replicas = [](const layout::Plan& plan) {
      return " with " + std::to_string(layout::train_role(plan).mesh.data) + " replicas";
    };
    PartitionOptions options = options_;
    if (options_.replicas == 1 || options_.shard_state) return;
    options.shard_state = true;
    try_one("--shard-state", options, replicas);
  }

  void try_ranks() {
    topology::Topology topology = topology_;
    PartitionOptions options = options_;
    options.stages = 0;
    options.may_idle = true;
    while (topology.ranks.size() < 2 * topology_.ranks.size()) {
      topology = topology::with_another_rank(std::move(topology));
      const std::size_t more = topology.ranks.size() - topology_.ranks.size();
      const bool is_told = more == 1 || more == topology_.ranks.size();
      const std::string change = std::to_string(topology.ranks.size()) + " ranks";
      if (is_told && try_on(topology, change, options)) return;
    }
  }

  const profile::Profile& profile_;
  const topology::Topology& topology_;
  PartitionOptions options_;
  const FindPlan& find_plan_;
  std::vector<FittingChange> changes_;
};

}  // namespace

std::vector<FittingChange> fitting_changes(const profile::Profile& profile,
                                           const topology::Topology& topology,
                                           const PartitionOptions& options,
                                           const FindPlan& find_plan) {
  return Tries(profile, topology, options, find_plan).all();
}

std::string show(const std::vector<FittingChange>& changes) {
  if (changes.empty()) {
    return "no single change that was tried does: more ranks, smaller microbatches (profile them), "
           "or ranks with more memory may";
  }
  std::string text = "with one change a plan fits, the fastest first:";
  for (const FittingChange& one : changes) {
    char step[40];
    std::snprintf(step, sizeof step, "%.3f", one.step_ms);
    text += "\n  " + one.change + ": step " + step + " ms";
  }
  return text;
}

}  // namespace trireme::partition
