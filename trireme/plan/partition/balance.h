#pragma once

#include <span>
#include <vector>

#include "trireme/plan.h"
#include "trireme/plan/graph/graph.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::partition {

/// What stages are balanced for, other than by the search.
struct BalanceRules {
  Balance balance = Balance::kUniform;
  int num_stages = 1;  ///< At most one more than there are places for cuts.
  Objective objective = Objective::kSpeed;
};

/// Cuts as other libraries balance, moved to where the graph may be cut: kUniform, kParameters (`fill_evenly`; parameters
/// count where they are first used), kTree (tree_balance.h; bytes count as 0.2 of a node's weight, for the objective kMemory
/// as 0.8: of its parameters and what it makes). No stage is empty.
///
/// Cost   linear in the nodes, times some 50 for the bisections.
std::vector<int> balanced_cuts(const graph::Graph& planned, const profile::Profile& profile,
                               const BalanceRules& rules);

/// Runs of elements filled in order, each with as many as keep its sum within a bound, one at least; the least bound, by
/// bisection to a thousandth of the mean, for which the last run keeps it too: how a popular library balances parameters.
///
/// weights    at least `num_runs`, none negative.
/// Returns    where runs begin, but the first.
std::vector<int> fill_evenly(std::span<const double> weights, int num_runs);

}  // namespace trireme::partition
