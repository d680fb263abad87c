// Question: how long does it take to plan a recorded model for the ranks of a host, with a core for each, and with half
// as many?
//
// plan_speed NAME GRAPH PROFILE TOPOLOGY: a line for each number of cores: processor time of `partition_over_replicas`,
// the middle of three, and the plan's step. 16 microbatches, one lane, idle ranks and different numbers of ranks allowed.

#include <fmt/format.h>

#include <ctime>
#include <numeric>
#include <string>
#include <vector>

#include "benchmarks/alternate.h"
#include "benchmarks/json_main.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/profile/profile_json.h"
#include "trireme/plan/topology/topology_json.h"

namespace trireme::benchmarks {
namespace {

/// All ranks on one host, with `num_cores` that they share, or one for each.
topology::Topology with_cores(topology::Topology topology, int num_cores) {
  const auto num_ranks = static_cast<int>(topology.ranks.size());
  topology.hosts[0].num_cores = num_cores;
  for (int r = 0; r < num_ranks; ++r) {
    topology.ranks[r].cores.assign(num_cores == num_ranks ? 1 : num_cores, r);
    if (num_cores < num_ranks)
      std::iota(topology.ranks[r].cores.begin(), topology.ranks[r].cores.end(), 0);
  }
  return topology;
}

int run(const std::string& name, const std::string& graph_file, const std::string& profile_file,
        const std::string& topology_file) {
  const graph::Graph graph = graph::load(graph_file);
  const profile::Profile profile = profile::load(profile_file);
  const topology::Topology measured = topology::load(topology_file);
  const auto num_ranks = static_cast<int>(measured.ranks.size());
  const partition::PartitionOptions options{
      .batch = {16 * profile.microbatch, profile.microbatch, 1},
      .replicas = 0,
      .may_idle = true,
      .may_join = true};
  for (const int num_cores : {num_ranks, num_ranks / 2}) {
    const topology::Topology topology = with_cores(measured, num_cores);
    std::vector<double> seconds;
    layout::Plan plan;
    for (int round = 0; round < 3; ++round) {
      const std::clock_t begin = std::clock();
      plan = partition::partition_over_replicas(graph, profile, topology, options);
      seconds.push_back(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
    fmt::print(
        "{:12} {:5} nodes, {} ranks on {} cores: planned in {:.2f} s, step {:.3f} ms, {}, {} "
        "stages\n",
        name, graph.nodes.size(), num_ranks, num_cores, median(seconds), plan.prediction->step_ms,
        plan.schedule.name, plan.stages.size());
  }
  return 0;
}

}  // namespace
}  // namespace trireme::benchmarks

int main(int argc, char** argv) {
  using namespace trireme::benchmarks;
  if (argc != 5) {
    fmt::print(stderr, "plan_speed NAME GRAPH PROFILE TOPOLOGY\n");
    return 2;
  }
  return exit_code_of("plan_speed", [&] { return run(argv[1], argv[2], argv[3], argv[4]); });
}
