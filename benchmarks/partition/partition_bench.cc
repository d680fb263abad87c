// Question: how good and how fast is the partition?
//
//  exact     random chains of up to 14 nodes and 4 stages with limits, forbidden and required cuts
//            and ties: the DP against trying every partition.
//  balance   the slowest stage of balancers in use over the least possible, compute alone, on the
//            chains of chains.h.
//  step      time of an interleaved step by the simulator, random chains of 12 nodes: cuts by the
//            least slowest stage alone, and those that the search makes of them, over the best of
//            all partitions.
//  planning  time of `partition`, all schedules, 4 and 64 stages, on transformers of some number of
//            nodes; 64 stages from 1,000 to 100,000 nodes, and what the process holds at most: how it grows; 300 nodes
//            for ranks that share cores.

#include <fmt/format.h>
#include <sys/resource.h>

#include <cmath>
#include <ctime>

#include "benchmarks/alternate.h"
#include "benchmarks/json_main.h"
#include "benchmarks/machine.h"
#include "benchmarks/partition/block_partition.h"
#include "benchmarks/partition/chains.h"
#include "benchmarks/partition/exactness.h"
#include "trireme/base/json.h"
#include "trireme/plan/partition/balance.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/partition/range_cost.h"

namespace trireme::benchmarks {
namespace {

constexpr double kSame = 1 + 1e-9;  // Sums in another order.

/// Ratios to the best, 1 at least.
struct Ratios {
  std::vector<double> values;

  double geomean() const {
    double sum = 0;
    for (const double value : values) sum += std::log(value);
    return std::exp(sum / static_cast<double>(values.size()));
  }
  double worst() const { return *std::max_element(values.begin(), values.end()); }
  auto num_optimal() const {
    return std::count_if(values.begin(), values.end(), [](double v) { return v <= kSame; });
  }
  Json json() const {
    return {{"geomean", geomean()},
            {"worst", worst()},
            {"optimal", num_optimal()},
            {"of", values.size()}};
  }
  std::string text() const {
    return fmt::format("{:.3f} / {:.3f} / {} of {}", geomean(), worst(), num_optimal(),
                       values.size());
  }
};

Json run_exact() {
  const Exactness result = compare_with_exhaustive(20'000, 1);
  fmt::print("exact     {} chains, {} of them impossible: wrong {}\n", result.num_cases,
             result.num_impossible, result.wrong);
  return {{"operation", "exact"},
          {"cases", result.num_cases},
          {"impossible", result.num_impossible},
          {"wrong", result.wrong}};
}

struct Balancer {
  const char* name;
  std::vector<int> (*cut)(const Chain& chain, int num_stages);
};

/// That of the product, on the chain's graph.
template <Balance kBalance>
std::vector<int> balanced(const Chain& chain, int num_stages) {
  const Model model = make_model(chain, num_stages, true);
  return partition::balanced_cuts(model.graph, model.profile,
                                  {.balance = kBalance, .num_stages = num_stages});
}

constexpr Balancer kBalancers[] = {
    {"uniform", balanced<Balance::kUniform>},
    {"parameters", balanced<Balance::kParameters>},
    {"tree", balanced<Balance::kTree>},
    {"as parameters, fed times",
     [](const Chain& c, int k) { return partition::fill_evenly(work_of(c), k); }},
    {"block partition by time",
     [](const Chain& c, int k) { return block_partition(work_of(c), k); }},
    {"DP", [](const Chain& c, int k) { return least_largest_sum(work_of(c), k); }}};

Json run_balance() {
  const std::vector<Chain> chains = realistic_chains();
  std::string names;
  for (const Chain& chain : chains) {
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", chain.name, chain.size());
  }
  fmt::print("balance   {}\n          slowest stage / least: geomean / worst / optimal\n", names);
  Json results = Json::array();
  for (const Balancer& balancer : kBalancers) {
    Ratios all;
    std::string text;
    for (const int k : {2, 4, 8}) {
      Ratios ratios;
      for (const Chain& chain : chains) {
        const std::vector<double> work = work_of(chain);
        ratios.values.push_back(largest_sum(work, balancer.cut(chain, k)) /
                                largest_sum(work, least_largest_sum(work, k)));
      }
      all.values.insert(all.values.end(), ratios.values.begin(), ratios.values.end());
      text += fmt::format("  k = {}: {}", k, ratios.text());
      results.push_back({{"operation", "balance"}, {"by", balancer.name}, {"stages", k}});
      results.back().update(ratios.json());
      results.back()["ratios"] = ratios.values;
    }
    fmt::print("          {:<24}{}  all: {}\n", balancer.name, text, all.text());
  }
  return results;
}

/// Step of the best of all partitions.
double best_step_us(const partition::Problem& problem, const partition::Setting& setting,
                    std::vector<int>& cuts) {
  if (static_cast<int>(cuts.size()) + 1 == problem.num_stages) {
    return evaluate(problem, setting, cuts).forecast.simulation.step_us;
  }
  double best = std::numeric_limits<double>::infinity();
  const int num_nodes = static_cast<int>(setting.planned.nodes.size());
  for (int cut = cuts.empty() ? 1 : cuts.back() + 1; cut < num_nodes; ++cut) {
    cuts.push_back(cut);
    best = std::min(best, best_step_us(problem, setting, cuts));
    cuts.pop_back();
  }
  return best;
}

/// Step of the cuts whose slowest stage is least, links counted.
double chain_step_us(const partition::Problem& problem, const partition::Setting& setting) {
  const auto p = static_cast<std::size_t>(problem.num_stages);
  partition::RangeCost ranges(
      setting.planned, problem.profile,
      {.num_microbatches = problem.num_microbatches(), .in_flight = std::vector<int>(p, 1)},
      partition::RangeGoal::kTime);
  const auto chain = partition::cut_chain(
      ranges, {std::vector<bool>(setting.planned.nodes.size() + 1, true),
               {},
               std::vector<double>(p, std::numeric_limits<double>::infinity())});
  return evaluate(problem, setting, chain->cuts).forecast.simulation.step_us;
}

Json run_step(int num_stages, int microbatches_per_stage, bool has_free_links) {
  constexpr int kChains = 40;
  constexpr int kNodes = 12;
  const int m = num_stages * microbatches_per_stage;
  Ratios chain_ratios, search_ratios;
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < kChains; ++seed) {
    Chain chain = heavy_tailed(kNodes, 100 + seed);
    const Model model = make_model(chain, num_stages, has_free_links);
    const partition::PartitionOptions options{.batch = {m, 1, 1}, .schedule = "interleaved"};
    const partition::Problem problem{model.graph, model.profile, model.topology,
                                     options,     model.sha256,  num_stages};
    const partition::Setting setting{"interleaved", {}, model.graph};
    std::vector<int> cuts;
    const double best = best_step_us(problem, setting, cuts);
    const double searched =
        1000 * partition::partition(model.graph, model.profile, model.topology, options)
                   .prediction->step_ms;
    chain_ratios.values.push_back(chain_step_us(problem, setting) / best);
    search_ratios.values.push_back(searched / best);
    wrong +=
        searched * kSame < best || search_ratios.values.back() > chain_ratios.values.back() * kSame
            ? 1
            : 0;
  }
  fmt::print(
      "step      p = {}, m = {:>2}, links {}: least slowest stage {}  searched {}  wrong {}\n",
      num_stages, m, has_free_links ? "free" : "cost", chain_ratios.text(), search_ratios.text(),
      wrong);
  return {{"operation", "step"},
          {"stages", num_stages},
          {"microbatches", m},
          {"free_links", has_free_links},
          {"chain", chain_ratios.json()},
          {"search", search_ratios.json()},
          {"wrong", wrong}};
}

/// A transformer of about that many operators, a tenth of them with times of their own.
Chain long_chain(int num_nodes) {
  Chain chain = transformer("transformer", {128, 512, 8, (num_nodes - 4) / 15, 32000});
  const Chain noise = heavy_tailed(chain.size(), 7);
  for (int n = 0; n < chain.size(); n += 10) {
    chain.nodes[n].forward_us += noise.nodes[n].forward_us;
  }
  return chain;
}

/// The most that this process has held.
double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

/// Four ranks on two cores, and layouts of all kinds: stages, replicas, idle ranks.
Json run_planning_shared(int num_nodes) {
  constexpr int kRounds = 3, kRanks = 4;
  Model model = make_model(long_chain(num_nodes), kRanks, false);
  model.topology.hosts[0].num_cores = 2;
  for (topology::RankPlace& rank : model.topology.ranks) rank.cores = {0, 1};
  const partition::PartitionOptions options{
      .batch = {4 * kRanks, 1, kRanks}, .replicas = 0, .may_idle = true};
  std::vector<double> times;
  layout::Plan plan;
  for (int round = 0; round < kRounds; ++round) {
    times.push_back(run_ms([&] {
      plan =
          partition::partition_over_replicas(model.graph, model.profile, model.topology, options);
    }));
  }
  const double gap = plan.prediction->step_ms / plan.prediction->lower_bound_ms;
  fmt::print(
      "planning  {:>6} nodes, 4 ranks on 2 cores, median {:.0f} ms, slowest {:.0f} ms; {}, {} "
      "stages, step {:.3f} of "
      "the bound\n",
      model.graph.nodes.size(), median(times), quantile(times, 1), plan.schedule.name,
      plan.stages.size(), gap);
  return {{"operation", "planning_shared"}, {"nodes", model.graph.nodes.size()},
          {"median_ms", median(times)},     {"slowest_ms", quantile(times, 1)},
          {"schedule", plan.schedule.name}, {"step_over_bound", gap}};
}

Json run_planning(int num_nodes, int num_stages, Objective objective) {
  const int num_rounds = num_nodes > 10'000 ? 1 : 3;
  const Chain chain = long_chain(num_nodes);
  const Model model = make_model(chain, num_stages, false);
  const partition::PartitionOptions options{.batch = {4 * num_stages, 1, 1},
                                            .objective = objective};
  std::vector<double> times, processor_times;
  layout::Plan plan;
  int wrong = 0;
  for (int round = 0; round < num_rounds; ++round) {
    layout::Plan now;
    const std::clock_t begin = std::clock();
    times.push_back(run_ms(
        [&] { now = partition::partition(model.graph, model.profile, model.topology, options); }));
    processor_times.push_back(1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    wrong += round > 0 && now != plan ? 1 : 0;
    plan = std::move(now);
  }
  const char* name = objective == Objective::kSpeed ? "speed" : "memory";
  const double gap = plan.prediction->step_ms / plan.prediction->lower_bound_ms;
  fmt::print(
      "planning  {:>6} nodes, {} stages, {:<6} median {:.0f} ms, slowest {:.0f} ms, of the "
      "processor {:.0f} ms; {}, step "
      "{:.3f} of the bound, {:.0f} MiB; wrong {}\n",
      model.graph.nodes.size(), num_stages, name, median(times), quantile(times, 1),
      median(processor_times), plan.schedule.name, gap, peak_mib(), wrong);
  std::fflush(stdout);
  return {{"operation", "planning"},
          {"nodes", model.graph.nodes.size()},
          {"stages", num_stages},
          {"objective", name},
          {"median_ms", median(times)},
          {"slowest_ms", quantile(times, 1)},
          {"processor_ms", median(processor_times)},
          {"schedule", plan.schedule.name},
          {"step_over_bound", gap},
          {"peak_mib", peak_mib()},
          {"wrong", wrong}};
}

int run(const std::string& json_file) {
  const Machine machine;
  fmt::print("load before: {}\n", machine.load());
  Json results = Json::array({run_exact()});
  for (const Json& row : run_balance()) results.push_back(row);
  for (const bool has_free_links : {true, false}) {
    for (const int p : {3, 4}) {
      for (const int per_stage : {1, 4}) {
        results.push_back(run_step(p, per_stage, has_free_links));
      }
    }
  }
  results.push_back(run_planning_shared(300));
  for (const auto objective : {Objective::kSpeed, Objective::kMemory}) {
    for (const int num_nodes : {300, 1000, 3000}) {
      results.push_back(run_planning(num_nodes, 4, objective));
    }
  }
  results.push_back(run_planning(1000, 64, Objective::kMemory));
  for (const int num_nodes : {1000, 3000, 10'000, 30'000, 100'000}) {
    results.push_back(run_planning(num_nodes, 64, Objective::kSpeed));
  }
  write_json(json_file, {{"load", machine.load()}, {"results", results}});
  int wrong = 0;
  for (const Json& row : results) wrong += row.value("wrong", 0);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace trireme::benchmarks

int main(int argc, char** argv) {
  using namespace trireme::benchmarks;
  return exit_code_of("partition_bench", [&] { return run(json_file_of(argc, argv)); });
}
