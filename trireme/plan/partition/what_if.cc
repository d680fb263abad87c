#include "trireme/plan/partition/what_if.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/partition/what_if_late.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/simulate/forecast.h"
#include "trireme/plan/simulate/predicted_timeline.h"

namespace trireme::partition {
namespace {

using schedule::Operation;
using simulate::Price;
using simulate::Prices;

/// Changes prices of a step before it is played.
using ChangePrices = std::function<void(const schedule::StepProgram&, Prices&)>;

/// By world rank: its replica; -1 of those that do not train.
std::vector<int> replicas_of(const layout::Plan& plan) {
  const layout::Role& role = layout::train_role(plan);
  std::vector<int> replicas(1 + *std::max_element(role.placement.begin(), role.placement.end()),
                            -1);
  for (std::size_t i = 0; i < role.placement.size(); ++i) {
    replicas[role.placement[i]] = static_cast<int>(i) % role.mesh.data;
  }
  return replicas;
}

/// Calls `change` with every price, and the operation that has it.
void for_each(const schedule::StepProgram& program, Prices& prices,
              const std::function<void(int, const Operation&, Price&)>& change) {
  for (std::size_t rank = 0; rank < prices.size(); ++rank) {
    for (std::size_t i = 0; i < prices[rank].size(); ++i) {
      change(static_cast<int>(rank), program.ranks[rank][i], prices[rank][i]);
    }
  }
}

bool is_action(const Operation& operation) {
  return operation.kind == schedule::OperationKind::kCompute;
}

/// Every action takes what the others for which `key` says the same take on average.
template <typename Key>
ChangePrices averaged(Key key) {
  return [key](const schedule::StepProgram& program, Prices& prices) {
    std::map<decltype(key(Operation())), std::pair<double, double>> sums;
    for_each(program, prices, [&](int, const Operation& operation, const Price& price) {
      if (!is_action(operation)) return;
      auto& [work, count] = sums[key(operation)];
      work += price.work_us;
      count += 1;
    });
    for_each(program, prices, [&](int, const Operation& operation, Price& price) {
      if (!is_action(operation)) return;
      const auto& [work, count] = sums[key(operation)];
      price.work_us = work / count;
    });
  };
}

/// Every action takes the least that it takes in one of the replicas.
ChangePrices with_fastest_replicas() {
  return [](const schedule::StepProgram& program, Prices& prices) {
    std::map<schedule::Action, double> least;
    for_each(program, prices, [&](int, const Operation& operation, const Price& price) {
      if (!is_action(operation)) return;
      double& us = least.try_emplace(operation.action, price.work_us).first->second;
      us = std::min(us, price.work_us);
    });
    for_each(program, prices, [&](int, const Operation& operation, Price& price) {
      if (is_action(operation)) price.work_us = least.at(operation.action);
    });
  };
}

/// Operations with such traffic or work take no time.
ChangePrices without(std::vector<schedule::Traffic> traffics,
                     std::vector<schedule::ProcessorWork> works) {
  return [=](const schedule::StepProgram& program, Prices& prices) {
    for_each(program, prices, [&](int, const Operation& operation, Price& price) {
      const schedule::OperationRow& row = schedule::row_of(operation.kind);
      if (std::find(traffics.begin(), traffics.end(), row.traffic) != traffics.end()) {
        price.delay_us = price.bytes = 0;
      }
      if (std::find(works.begin(), works.end(), row.work) != works.end()) price.work_us = 0;
    });
  };
}

ChangePrices with_fast_stage(int stage) {
  return [stage](const schedule::StepProgram& program, Prices& prices) {
    for_each(program, prices, [&](int, const Operation& operation, Price& price) {
      if (is_action(operation) && operation.action.stage == stage) price.work_us /= 2;
    });
  };
}

profile::Profile with_fast_links(profile::Profile profile) {
  for (profile::LinkTable& table : profile.links) {
    for (profile::LinkTime& time : table.times) {
      time.alone_us /= 2;
      time.beside_compute_us /= 2;
    }
  }
  return profile;
}

topology::Topology with_fast_links(topology::Topology topology) {
  for (topology::SharedLink& link : topology.shared_links) link.gb_per_s *= 2;
  return topology;
}

topology::Topology with_own_cores(topology::Topology topology) {
  std::map<int, int> num_cores;  // By host.
  for (topology::RankPlace& rank : topology.ranks) rank.cores = {num_cores[rank.host]++};
  for (const auto& [host, count] : num_cores) topology.hosts[host].num_cores = count;
  return topology;
}

bool has_links(const profile::Profile& profile, profile::LinkKind kind) {
  return std::any_of(profile.links.begin(), profile.links.end(),
                     [kind](const profile::LinkTable& table) { return table.kind == kind; });
}

/// What actions took in a step that ran.
class MeasuredActions {
 public:
  MeasuredActions() = default;
  MeasuredActions(const layout::Plan& plan, const schedule::Timeline& measured) {
    const std::vector<int> replicas = replicas_of(plan);
    for (const schedule::TimelineEvent& event : measured.events) {
      const bool is_action = event.track == schedule::kComputeTrack && event.stage >= 0;
      if (!is_action || event.rank >= std::ssize(replicas)) continue;
      times_[{replicas[event.rank], event.name}] = event.duration_us;
    }
  }

  bool is_empty() const { return times_.empty(); }

  /// Learns how much longer than `predicted` each stage's actions took.
  void compare(const layout::Plan& plan, const schedule::StepProgram& program, Prices predicted) {
    const std::vector<int> replicas = replicas_of(plan);
    std::map<int, std::pair<double, double>> sums;
    for_each(program, predicted, [&](int rank, const Operation& operation, const Price& price) {
      const double* time = find(replicas[rank], operation);
      if (time == nullptr) return;
      auto& [took, expected] = sums[operation.action.stage];
      took += *time;
      expected += price.work_us;
    });
    for (const auto& [stage, sum] : sums) {
      if (sum.second > 0) slower_[stage] = sum.first / sum.second;
    }
  }

  /// Actions take what they took; those that did not run what is predicted, slowed down as their stage's were.
  void apply(const layout::Plan& plan, const schedule::StepProgram& program, Prices& prices) const {
    const std::vector<int> replicas = replicas_of(plan);
    for_each(program, prices, [&](int rank, const Operation& operation, Price& price) {
      if (!is_action(operation)) return;
      const double* time = find(replicas[rank], operation);
      const auto slower = slower_.find(operation.action.stage);
      if (time != nullptr) {
        price.work_us = *time;
      } else if (slower != slower_.end()) {
        price.work_us *= slower->second;
      }
    });
  }

 private:
  const double* find(int replica, const Operation& operation) const {
    if (!is_action(operation)) return nullptr;
    const auto found = times_.find({replica, to_text(operation.action)});
    return found == times_.end() ? nullptr : &found->second;
  }

  std::map<std::pair<int, std::string>, double> times_;  ///< By replica and text.
  std::map<int, double> slower_;                         ///< By stage.
};

class Player {
 public:
  explicit Player(const PlannedStep& step) : step_(step) {
    if (step.measured == nullptr) return;
    measured_ = MeasuredActions(step.plan, *step.measured);
    const graph::Graph planned = layout::planned_graph(step.recorded, step.plan);
    const layout::ParameterMap map = layout::make_parameter_map(planned, step.plan);
    const simulate::PriceInputs inputs{planned, step.plan, map, step.profile, step.topology};
    const simulate::Forecast forecast = simulate::forecast(inputs, step.options);
    measured_.compare(step.plan, forecast.program,
                      simulate::prices(forecast.program, forecast.stages, inputs));
  }

  WhatIfs play() {
    WhatIfs result;
    result.now = played("as it is", {});
    add_machines();
    add_plans();
    if (step_.measured == nullptr) {
      std::ranges::move(what_if_late(step_), std::back_inserter(changes_));
      add_new_plans();
    }
    std::stable_sort(changes_.begin(), changes_.end(), [](const WhatIf& a, const WhatIf& b) {
      return a.us_per_sample < b.us_per_sample;
    });
    result.changes = std::move(changes_);
    return result;
  }

 private:
  /// What is played; what is null is the step's own.
  struct Scene {
    const layout::Plan* plan = nullptr;
    const profile::Profile* profile = nullptr;
    const topology::Topology* topology = nullptr;
  };

  WhatIf played(std::string what, const Scene& scene, const ChangePrices& change = {}) const {
    const layout::Plan& plan = scene.plan == nullptr ? step_.plan : *scene.plan;
    const profile::Profile& profile = scene.profile == nullptr ? step_.profile : *scene.profile;
    const topology::Topology& topology =
        scene.topology == nullptr ? step_.topology : *scene.topology;
    const graph::Graph planned = layout::planned_graph(step_.recorded, plan);
    const layout::ParameterMap map = layout::make_parameter_map(planned, plan);
    const simulate::PriceInputs inputs{planned, plan, map, profile, topology};
    simulate::ForecastOptions options = step_.options;
    options.plays_alike_once = measured_.is_empty();  // What was measured differs between replicas.
    const simulate::Forecast forecast = simulate::forecast(inputs, options);
    Prices prices = simulate::prices(forecast.program, forecast.stages, inputs,
                                     step_.options.memory.gradient_dtype);
    measured_.apply(plan, forecast.program, prices);
    if (change) change(forecast.program, prices);
    const double step_us =
        simulate::simulate(forecast.program, prices, topology, forecast.played_by).step_us;
    return {std::move(what), step_us, step_us / static_cast<double>(plan.batch.global_batch),
            forecast.peak_bytes()};
  }

  /// Leaves out what cannot be.
  void add(const std::string& what, const Scene& scene, const ChangePrices& change = {}) {
    try {
      changes_.push_back(played(what, scene, change));
    } catch (const Error&) {
      return;
    }
  }

  void add_machines() {
    const int num_ranks = layout::train_role(step_.plan).num_ranks();
    if (num_ranks > 1) {
      const profile::Profile links = with_fast_links(step_.profile);
      const topology::Topology shared = with_fast_links(step_.topology);
      add("links twice as fast", {.profile = &links, .topology = &shared});
      add("messages in no time", {},
          without({schedule::Traffic::kMessage}, {schedule::ProcessorWork::kCopy}));
    }
    if (layout::train_role(step_.plan).mesh.data > 1) {
      add("sums over replicas in no time", {},
          without({schedule::Traffic::kBucket, schedule::Traffic::kValues}, {}));
    }
    add("updates in no time", {},
        without({}, {schedule::ProcessorWork::kFold, schedule::ProcessorWork::kUpdate}));
    const topology::Topology cores = with_own_cores(step_.topology);
    if (cores != step_.topology) add("a core for each rank", {.topology = &cores});
    add_stages();
  }

  void add_stages() {
    const int num_stages = static_cast<int>(step_.plan.stages.size());
    for (int s = 0; s < num_stages; ++s) {
      add("stage " + std::to_string(s) + " in half the time", {}, with_fast_stage(s));
    }
    if (num_stages > 1) {
      add("stages of equal length", {},
          averaged([](const Operation& operation) { return operation.action.kind; }));
    }
    if (measured_.is_empty()) return;
    add("microbatches of equal length", {}, averaged([](const Operation& operation) {
          return std::pair(operation.action.stage, operation.action.kind);
        }));
    const layout::Role& role = layout::train_role(step_.plan);
    if (role.mesh.data > 1 && role.is_even()) {
      add("no replica slower than the fastest", {}, with_fastest_replicas());
    }
  }

  void add_plans() {
    const bool is_own = step_.plan.schedule.name == layout::kCustomSchedule;
    const int each =
        static_cast<int>(step_.plan.stages.size()) / layout::train_role(step_.plan).mesh.pipeline;
    for (const std::string& name : schedule::schedule_names(each)) {
      const bool is_its_own = name == step_.plan.schedule.name;
      if (is_own || (is_its_own && step_.plan.schedule.parameters.empty())) continue;
      layout::Plan plan = step_.plan;
      plan.schedule = {.name = name, .parameters = {}};
      schedule::deal_out_stages(plan, each);
      plan.roles = step_.plan.roles;  // As many positions and replicas as before.
      add(is_its_own ? "any number of active microbatches" : "schedule " + name, {.plan = &plan});
    }
    layout::Plan kept = step_.plan;
    for (layout::Stage& stage : kept.stages) {
      stage.recompute = false;
      stage.regions.clear();
    }
    if (kept != step_.plan) add("nothing recomputed", {.plan = &kept});
    layout::Plan twice = step_.plan;
    twice.batch.global_batch *= 2;
    if (!is_own) add("twice the microbatches", {.plan = &twice});
  }

  PartitionOptions options_of_new_plan() const {
    PartitionOptions options{.batch = step_.plan.batch,
                             .replicas = 0,
                             .copied_nodes = step_.plan.copied_nodes,
                             .may_idle = true};
    options.forecast = step_.options;
    const auto& parameters = step_.plan.schedule.parameters;
    const auto active = parameters.find(std::string(schedule::kActiveMicrobatches));
    if (active != parameters.end()) options.active_microbatches = static_cast<int>(active->second);
    return options;
  }

  void add_new_plan(const std::string& what, const topology::Topology& topology,
                    const PartitionOptions& options) {
    try {
      const layout::Plan plan =
          partition_over_replicas(step_.recorded, step_.profile, topology, options);
      changes_.push_back(played(what, {.plan = &plan, .topology = &topology}));
    } catch (const Error&) {
      return;
    }
  }

  void add_new_plans() {
    PartitionOptions options = options_of_new_plan();
    add_new_plan("the fastest plan for these ranks", step_.topology, options);
    if (has_links(step_.profile, profile::LinkKind::kNetwork)) {
      add_new_plan("a host more, and a new plan", topology::with_another_host(step_.topology),
                   options);
    } else {
      add_new_plan("a rank more, and a new plan", topology::with_another_rank(step_.topology),
                   options);
    }
    for (const topology::RankPlace& rank : step_.topology.ranks) {
      options.device_memory_bytes = std::max(options.device_memory_bytes, 2 * rank.memory_bytes);
    }
    add_new_plan("twice the memory, and a new plan", step_.topology, options);
  }

  const PlannedStep& step_;
  MeasuredActions measured_;
  std::vector<WhatIf> changes_;
};

}  // namespace

WhatIfs what_if(const PlannedStep& step) { return Player(step).play(); }

}  // namespace trireme::partition
