#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "trireme/plan/schedule/step_facts.h"
#include "trireme/plan/schedule/step_program.h"

namespace trireme::schedule::testing {

/// A step and everything that it follows from.
struct StepCase {
  graph::Graph graph;
  layout::Plan plan;
  layout::ParameterMap map;
  ProgramOptions options;
  StepFacts facts;
  Schedule schedule;
  StepProgram program;
};

struct CaseOptions {
  std::vector<int> cuts;
  int replicas = 1;
  std::string schedule = "simple";
  int stages_per_rank = 1;
  int microbatches = 2;  ///< Per replica.
  bool has_norm = false;
  bool shards_state = false;
  bool shards_parameters = false;
  std::vector<int> offloads = {};  ///< Stages.
  std::vector<layout::TieOwner> tie_owners;
  std::vector<int> placement;  ///< Empty: ranks are numbered as the mesh has them.
};

/// Buckets are small, so that there are several.
StepCase make_case(const graph::Graph& graph, const CaseOptions& options);

/// x -> a -> b -> c -> d -> loss; the output of a, and its tie `t`, are used in b and d too.
///
///     0 a = mul(x, t)   1 b = mul(a, s)   2 c = mul(b, a)   3 d = add(c, a, t)   4 loss
graph::Graph make_skips_and_ties();

/// Two losses and a metric at different depths; cuts anywhere.
graph::Graph make_losses();

/// A graph by hand or at random, cut into 1 to 8 stages where cuts are allowed, on as many ranks or fewer, 1, 2 or 4
/// replicas, any schedule, ranks shuffled; often with several replicas on some ranks.
StepCase make_random_case(std::mt19937& random);

/// A random number below `count`.
int pick(std::mt19937& random, std::size_t count);

/// A rank's operations, ` | ` between them.
std::string picture(const StepProgram& program, int rank);

}  // namespace trireme::schedule::testing
