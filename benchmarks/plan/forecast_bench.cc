// Question: how long does the forecast of a step take, and how does it grow with the devices?
//
// A chain of equal nodes in 16 stages, schedule `interleaved`, 500 microbatches a replica: 1,000 actions a device,
// with the messages, sums and updates that belong to them. Hosts have 8 devices, each with a core of its own.
//
//  all     every replica is played
//  alike   replicas that are alike are played once; where both fit, the forecasts must be the same numbers

#include <fmt/format.h>
#include <sys/resource.h>

#include <ctime>
#include <numeric>
#include <string>
#include <vector>

#include "benchmarks/json_main.h"
#include "benchmarks/machine.h"
#include "benchmarks/partition/chain.h"
#include "trireme/base/json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/simulate/forecast.h"

namespace trireme::benchmarks {
namespace {

constexpr int kStages = 16;
constexpr int kMicrobatches = 500;
constexpr int kDevicesPerHost = 8;
constexpr int kMostPlayed = 4096;  ///< Devices, one by one.

topology::Topology make_cluster(int num_devices) {
  constexpr std::int64_t kMemory = std::int64_t{1} << 36;
  topology::Topology topology;
  for (int d = 0; d < num_devices; ++d) {
    const int host = d / kDevicesPerHost;
    if (d % kDevicesPerHost == 0) {
      topology.hosts.push_back(
          {"host" + std::to_string(host), kDevicesPerHost, kDevicesPerHost * kMemory});
    }
    topology.ranks.push_back({host, {d % kDevicesPerHost}, kMemory});
  }
  return topology;
}

layout::Plan make_plan(const Model& model, int replicas, bool is_sharded) {
  std::vector<int> cuts(kStages - 1);
  std::iota(cuts.begin(), cuts.end(), 1);
  layout::Plan plan = layout::make_manual_plan(
      model.graph, model.sha256, cuts, {std::int64_t{kMicrobatches} * replicas, 1, replicas});
  plan.schedule.name = "interleaved";
  plan.sharded_state = is_sharded;
  layout::Role& role = plan.roles[0];
  role.mesh.data = replicas;
  role.placement.resize(static_cast<std::size_t>(role.mesh.num_places()));
  std::iota(role.placement.begin(), role.placement.end(), 0);
  return plan;
}

double processor_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double peak_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);
}

struct Timed {
  simulate::Forecast forecast;
  double seconds = 0;
};

Timed forecast_of(const Model& model, int num_devices, bool is_sharded, bool plays_alike_once) {
  const topology::Topology topology = make_cluster(num_devices);
  const layout::Plan plan = make_plan(model, num_devices / kStages, is_sharded);
  const double begin = processor_s();
  const layout::ParameterMap map =
      layout::make_parameter_map(model.graph, plan, {.graph_sha256 = model.sha256});
  Timed timed{simulate::forecast({model.graph, plan, map, model.profile, topology},
                                 {.plays_alike_once = plays_alike_once})};
  timed.seconds = processor_s() - begin;
  return timed;
}

bool is_same(const simulate::Forecast& a, const simulate::Forecast& b) {
  return a.simulation.step_us == b.simulation.step_us &&
         a.simulation.busy_us == b.simulation.busy_us && a.memory == b.memory;
}

Json row(const std::string& played, int num_devices, bool is_sharded, const Timed& timed) {
  std::size_t num_operations = 0;
  int num_played = 0;
  for (const auto& rank : timed.forecast.program.ranks) {
    num_operations += rank.size();
    num_played += rank.empty() ? 0 : 1;
  }
  fmt::print(
      "{:<6} {:>7} devices, state {:<7}  {:>6} played, {:>9} operations  {:7.2f} s  step {:.1f} ms "
      " peak "
      "{:.2f} GiB\n",
      played, num_devices, is_sharded ? "sharded" : "whole", num_played, num_operations,
      timed.seconds, timed.forecast.simulation.step_us / 1000, peak_gib());
  std::fflush(stdout);
  return {{"played", played},           {"devices", num_devices},       {"sharded", is_sharded},
          {"ranks_played", num_played}, {"operations", num_operations}, {"seconds", timed.seconds}};
}

Model make_equal_chain() {
  Chain chain{"equal", std::vector<ChainNode>(kStages)};
  for (ChainNode& node : chain.nodes) node = {1000, 1000, 1000, 4096, 12 << 20};
  Model model = make_model(chain, 1, false);
  model.profile.links.push_back({profile::LinkKind::kNetwork, {{64, 50, 50}, {1 << 20, 900, 900}}});
  model.profile.step = {0.1, 0.2, 0.5};
  return model;
}

int run(const std::string& json_file) {
  const Machine machine;
  fmt::print("load before: {}\n", machine.load());
  const Model model = make_equal_chain();
  Json rows = Json::array();
  int wrong = 0;
  for (const bool is_sharded : {false, true}) {
    for (const int num_devices : {64, 512, 4096, 100'000}) {
      const Timed alike = forecast_of(model, num_devices, is_sharded, true);
      rows.push_back(row("alike", num_devices, is_sharded, alike));
      if (num_devices > kMostPlayed) continue;
      const Timed all = forecast_of(model, num_devices, is_sharded, false);
      rows.push_back(row("all", num_devices, is_sharded, all));
      wrong += is_same(alike.forecast, all.forecast) ? 0 : 1;
    }
  }
  fmt::print("wrong {}\n", wrong);
  write_json(json_file, {{"load", machine.load()}, {"results", rows}});
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace trireme::benchmarks

int main(int argc, char** argv) {
  using namespace trireme::benchmarks;
  return exit_code_of("forecast_bench", [&] { return run(json_file_of(argc, argv)); });
}
