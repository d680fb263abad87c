// Draws plans at random for a measured model, good ones or not, each with its forecast: what `./dev bench plan`
// trains by. Of each, at random: replicas, stages on a rank, schedule, cuts, microbatches, what is recomputed, and
// what replicas have in shards. Schedules are taken in turn, so that few plans have many of them.
//
// Writes FOLDER/0.plan.json and so on, and for every batch an uncut plan for one rank that has the same losses. Prints
// a line of JSON for each plan.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/json_main.h"
#include "trireme/base/json.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/choose_regions.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/plan_json.h"
#include "trireme/plan/profile/profile_json.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/schedule/step_facts.h"
#include "trireme/plan/simulate/forecast.h"
#include "trireme/plan/topology/topology_json.h"

namespace trireme::benchmarks {
namespace {

struct Options {
  std::string graph, profile, topology, folder;
  int count = 1;
  int first_schedule = 0;  ///< Of the schedules in turn.
  std::uint64_t seed = 0;
};

/// Batches of a step; lanes decide bits, so each pair has losses of its own.
struct Batches {
  std::int64_t microbatches;
  std::int64_t lanes;
};
constexpr std::array<Batches, 3> kBatches = {{{4, 4}, {8, 2}, {12, 3}}};

struct Measured {
  graph::Graph graph;
  std::string sha256;
  profile::Profile profile;
  topology::Topology topology;
};

/// What is drawn of a plan before its cuts.
struct Shape {
  std::string schedule;
  Batches batches;
  int replicas = 1;
  int stages_per_rank = 1;
  int num_stages = 1;
};

class Drawer {
 public:
  Drawer(const Measured& measured, const Options& options)
      : measured_(measured), random_(options.seed), schedule_(options.first_schedule) {
    const std::vector<bool> allowed = graph::allowed_cuts(measured.graph);
    for (std::size_t c = 0; c < allowed.size(); ++c) {
      if (allowed[c]) cuts_.push_back(static_cast<int>(c));
    }
  }

  layout::Plan draw() {
    const Shape shape = draw_shape();
    layout::Plan plan = uncut(shape.batches, draw_cuts(shape.num_stages - 1));
    plan.schedule.name = shape.schedule;
    schedule::deal_out_stages(plan, shape.stages_per_rank);
    layout::set_replicas(plan, shape.replicas);
    draw_recompute(plan);
    if (shape.replicas > 1) {
      plan.sharded_state = below(3) == 0;
      plan.sharded_parameters = plan.sharded_state && below(2) == 0;
    }
    plan.threads = measured_.profile.threads;
    plan.profile_sha256 = profile::profile_sha256(measured_.profile);
    plan.topology_sha256 = topology::topology_sha256(measured_.topology);
    return plan;
  }

  layout::Plan uncut(const Batches& batches, const std::vector<int>& cuts = {}) const {
    const std::int64_t b = measured_.profile.microbatch;
    return layout::make_manual_plan(
        measured_.graph, measured_.sha256, cuts,
        {.global_batch = b * batches.microbatches, .microbatch = b, .lanes = batches.lanes});
  }

 private:
  /// The same numbers with every standard library.
  int below(int end) { return static_cast<int>(random_() % static_cast<std::uint64_t>(end)); }

  template <typename T>
  T one_of(std::span<const T> all) {
    return all[below(static_cast<int>(all.size()))];
  }

  int num_ranks() const { return static_cast<int>(measured_.topology.ranks.size()); }

  Shape draw_shape() {
    const std::vector<std::string> names = schedule::schedule_names(0);
    for (;;) {
      Shape shape{.schedule = names[schedule_++ % names.size()],
                  .batches = one_of<Batches>(kBatches)};
      std::vector<int> replicas;
      for (int r = 1; r <= num_ranks(); ++r) {
        const BatchLayout batch{.lanes = shape.batches.lanes};
        if (num_ranks() % r == 0 && schedule::keeps_bits(batch, r)) replicas.push_back(r);
      }
      shape.replicas = one_of<int>(replicas);
      std::vector<int> stages_per_rank;
      for (int v = 1; v <= 3; ++v) {
        if (std::ranges::count(schedule::schedule_names(v), shape.schedule) > 0)
          stages_per_rank.push_back(v);
      }
      shape.stages_per_rank = one_of<int>(stages_per_rank);
      shape.num_stages = num_ranks() / shape.replicas * shape.stages_per_rank;
      if (static_cast<std::size_t>(shape.num_stages) <= cuts_.size() + 1) return shape;
    }
  }

  std::vector<int> draw_cuts(int num_cuts) {
    std::vector<int> left = cuts_, drawn;
    for (int i = 0; i < num_cuts; ++i) {
      const int index = below(static_cast<int>(left.size()));
      drawn.push_back(left[index]);
      left.erase(left.begin() + index);
    }
    std::ranges::sort(drawn);
    return drawn;
  }

  /// Half of the plans recompute nothing, else each stage does so or not.
  void draw_recompute(layout::Plan& plan) {
    if (below(2) == 0) return;
    for (int s = 0; s < static_cast<int>(plan.stages.size()); ++s) {
      plan.stages[s].recompute = below(2) == 0;
      if (plan.stages[s].recompute && below(2) == 0) {
        plan.stages[s].regions = layout::even_regions(measured_.graph, plan, s, 2 + below(3));
      }
    }
  }

  const Measured& measured_;
  std::mt19937_64 random_;
  std::size_t schedule_;
  std::vector<int> cuts_;
};

Prediction predict(const Measured& measured, const layout::Plan& plan) {
  const layout::ParameterMap map = layout::make_parameter_map(measured.graph, plan);
  const simulate::PriceInputs inputs{measured.graph, plan, map, measured.profile,
                                     measured.topology};
  const simulate::Forecast forecast = simulate::forecast(inputs);
  Prediction prediction{.step_ms = forecast.simulation.step_us / 1000,
                        .lower_bound_ms = forecast.any_bound_us / 1000};
  for (const simulate::RankMemory& rank : forecast.memory)
    prediction.peak_bytes.push_back(rank.by_kind());
  for (const simulate::RankMemory& rank : simulate::expected_memory(inputs, forecast, {}))
    prediction.expected_peak_bytes.push_back(rank.total());
  return prediction;
}

std::string recompute_text(const layout::Plan& plan) {
  const auto num_whole = std::ranges::count_if(
      plan.stages, [](const layout::Stage& s) { return s.recompute && s.regions.empty(); });
  const auto num_regions = std::ranges::count_if(
      plan.stages, [](const layout::Stage& stage) { return !stage.regions.empty(); });
  return fmt::format("{}+{}/{}", num_whole, num_regions, plan.stages.size());
}

std::string reference_name(const BatchLayout& batch) {
  return fmt::format("uncut_{}_{}.plan.json", batch.num_microbatches(), batch.lanes);
}

Json row(const layout::Plan& plan, const std::string& file) {
  return {{"file", file},
          {"uncut", reference_name(plan.batch)},
          {"schedule", plan.schedule.name},
          {"stages", plan.stages.size()},
          {"replicas", layout::train_role(plan).mesh.data},
          {"microbatches", plan.batch.num_microbatches()},
          {"recompute", recompute_text(plan)},
          {"shards", plan.sharded_parameters ? "parameters"
                     : plan.sharded_state    ? "state"
                                             : "-"},
          {"step_ms", plan.prediction->step_ms},
          {"peak_bytes", plan.prediction->expected_peak_bytes}};
}

int run(const Options& options) {
  const std::filesystem::path folder(options.folder);
  graph::Graph graph = graph::load(options.graph);
  std::string sha256 = graph::graph_sha256(graph);
  profile::Profile profile = profile::load(options.profile);
  profile::check(profile, graph);
  const Measured measured{std::move(graph), std::move(sha256), std::move(profile),
                          topology::load(options.topology)};
  Drawer drawer(measured, options);
  for (const Batches& batches : kBatches) {
    const layout::Plan plan = drawer.uncut(batches);
    layout::save(plan, folder / reference_name(plan.batch));
  }
  for (int i = 0; i < options.count; ++i) {
    layout::Plan plan = drawer.draw();
    plan.prediction = predict(measured, plan);
    const std::string file = fmt::format("{}.plan.json", i);
    layout::save(plan, folder / file);
    fmt::print("{}\n", row(plan, file).dump());
  }
  return 0;
}

}  // namespace
}  // namespace trireme::benchmarks

int main(int argc, char** argv) {
  using namespace trireme::benchmarks;
  Options options;
  CLI::App app("Draws plans at random, with their forecasts.", "draw_plans");
  app.add_option("--graph", options.graph)->required();
  app.add_option("--profile", options.profile)->required();
  app.add_option("--topology", options.topology)->required();
  app.add_option("--out", options.folder, "Folder that is there")->required();
  app.add_option("--count", options.count, "Plans");
  app.add_option("--first-schedule", options.first_schedule);
  app.add_option("--seed", options.seed);
  CLI11_PARSE(app, argc, argv);
  return exit_code_of("draw_plans", [&] { return run(options); });
}
