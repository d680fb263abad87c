#include "tests/plan/schedule/step_cases.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "tests/graphs/graph_builder.h"
#include "tests/graphs/sample_graphs.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::schedule::testing {
namespace {

using graph::ValueId;
using graph::testing::GraphBuilder;

std::vector<int> random_cuts(const graph::Graph& graph, std::mt19937& random) {
  std::vector<int> positions;
  const std::vector<bool> allowed = graph::allowed_cuts(graph);
  for (int position = 1; position < static_cast<int>(graph.nodes.size()); ++position) {
    if (allowed[position]) positions.push_back(position);
  }
  std::shuffle(positions.begin(), positions.end(), random);
  positions.resize(std::min<std::size_t>(positions.size(), pick(random, 8)));
  std::sort(positions.begin(), positions.end());
  return positions;
}

graph::Graph random_graph(std::mt19937& random) {
  switch (pick(random, 6)) {
    case 0:
      return graph::testing::make_mlp();
    case 1:
      return graph::testing::make_rich_graph();
    case 2:
      return make_losses();
    case 3:
      return make_skips_and_ties();
    default:
      return graph::testing::make_random_graph(random(), 30);
  }
}

/// Ranks in any order, each with 1, 2, 4, ... replicas of its position, `most` at most.
std::vector<int> random_placement(int positions, int replicas, int most, std::mt19937& random) {
  std::vector<int> each;  // By position.
  int num_ranks = 0;
  for (int p = 0; p < positions; ++p) {
    each.push_back(1);
    while (2 * each.back() <= most && pick(random, 2) == 0) each.back() *= 2;
    num_ranks += replicas / each.back();
  }
  std::vector<int> ranks(num_ranks);
  std::iota(ranks.begin(), ranks.end(), 0);
  std::shuffle(ranks.begin(), ranks.end(), random);
  std::vector<int> placement;
  auto rank = ranks.begin();
  for (int p = 0; p < positions; ++p) {
    for (int r = 0; r < replicas; r += each[p]) placement.insert(placement.end(), each[p], *rank++);
  }
  return placement;
}

}  // namespace

StepCase make_case(const graph::Graph& graph, const CaseOptions& options) {
  StepCase step;
  step.graph = graph;
  step.options.has_norm = options.has_norm;
  const std::int64_t batch = options.microbatches * options.replicas;
  const std::string hash = graph::graph_sha256(graph);
  step.plan = layout::make_manual_plan(graph, hash, options.cuts, {batch, 1, options.replicas});
  step.plan.schedule.name = options.schedule;
  deal_out_stages(step.plan, options.stages_per_rank);
  step.plan.tie_owners = options.tie_owners;
  layout::Role& role = step.plan.roles[0];
  role.mesh.data = options.replicas;
  role.placement = options.placement;
  if (role.placement.empty()) {
    role.placement.resize(role.mesh.num_places());
    std::iota(role.placement.begin(), role.placement.end(), 0);
  }
  step.plan.sharded_state = options.shards_state || options.shards_parameters;
  step.plan.sharded_parameters = options.shards_parameters;
  for (const int stage : options.offloads) step.plan.stages[stage].offload = true;
  layout::check(step.plan, hash, graph);
  step.plan.bucket_bytes = 64;
  step.map = layout::make_parameter_map(graph, step.plan);
  step.facts = step_facts(graph, step.plan, step.map, step.options);
  step.schedule = schedule_of(step.plan);
  step.program = make_step_program(graph, step.plan, step.map, step.options);
  return step;
}

graph::Graph make_skips_and_ties() {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId t = b.parameter("t", {4});
  const ValueId s = b.parameter("s", {4});
  const ValueId a = b.node("mul", {x, t}, b.batch({4}));
  const ValueId h = b.node("mul", {a, s}, b.batch({4}));
  const ValueId c = b.node("mul", {h, a}, b.batch({4}));
  b.loss(b.node("add", {c, a, t}, b.batch({4})));
  return b.graph();
}

graph::Graph make_losses() {
  GraphBuilder b;
  ValueId h = b.input("x", {4});
  for (int i = 0; i < 4; ++i) {
    h = b.node("mul", {h, b.parameter("p" + std::to_string(i), {4})}, b.batch({4}));
    if (i % 2 == 1) b.loss(h, "loss" + std::to_string(i));
  }
  b.loss(h, "accuracy");
  const ValueId weight = b.node("sum", {b.input("mask", {4})}, b.fixed({}));
  b.graph().losses.front().weight = weight;
  b.graph().losses.back().coefficient = 0;
  return b.graph();
}

StepCase make_random_case(std::mt19937& random) {
  const graph::Graph graph = random_graph(random);
  CaseOptions options{.cuts = random_cuts(graph, random), .replicas = 1 << pick(random, 3)};
  const int num_stages = static_cast<int>(options.cuts.size()) + 1;
  std::vector<int> divisors;
  for (int n = 1; n <= num_stages; ++n) {
    if (num_stages % n == 0) divisors.push_back(n);
  }
  options.stages_per_rank = divisors[pick(random, divisors.size())];
  const std::vector<std::string> names = schedule_names(options.stages_per_rank);
  options.schedule = names[pick(random, names.size())];
  options.microbatches = 1 + pick(random, 4);
  options.has_norm = pick(random, 2) == 0;
  const int shards = pick(random, 3);
  options.shards_state = shards == 1;
  options.shards_parameters = shards == 2;
  for (int s = 0; s < num_stages; ++s) {
    if (pick(random, 3) == 0) options.offloads.push_back(s);
  }
  const bool is_uneven = shards == 0 && pick(random, 2) == 0;
  options.placement = random_placement(num_stages / options.stages_per_rank, options.replicas,
                                       is_uneven ? options.replicas : 1, random);
  return make_case(graph, options);
}

int pick(std::mt19937& random, std::size_t count) { return static_cast<int>(random() % count); }

std::string picture(const StepProgram& program, int rank) {
  std::string text;
  for (const Operation& operation : program.ranks.at(rank)) {
    text += (text.empty() ? "" : " | ") + to_text(program, operation);
  }
  return text;
}

}  // namespace trireme::schedule::testing
