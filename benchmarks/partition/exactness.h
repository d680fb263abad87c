#pragma once

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "trireme/plan/partition/chain.h"

namespace trireme::benchmarks {

/// A random chain of at most 14 nodes and 4 stages with small whole costs, so that many cuts tie;
/// with costs of crossing a cut, forbidden and required cuts, and limits that weigh a node more in
/// early stages, as activations do.
struct RandomCase {
  std::vector<double> work, bytes, crossing;
  partition::ChainRules rules;

  explicit RandomCase(std::mt19937_64& random) {
    const auto pick = [&](int count) { return static_cast<int>(random() % count); };
    const int num_nodes = 1 + pick(14), num_stages = 1 + pick(4);
    const bool has_limits = pick(2) == 0;
    crossing.push_back(0);
    for (int n = 0; n < num_nodes; ++n) {
      work.push_back(pick(8));
      bytes.push_back(pick(6));
      crossing.push_back(n + 1 == num_nodes ? 0 : pick(3));
    }
    rules.allowed.resize(static_cast<std::size_t>(num_nodes) + 1);
    for (int c = 1; c < num_nodes; ++c) {
      rules.allowed[c] = pick(5) != 0;
      const bool has_room = static_cast<int>(rules.required.size()) + 1 < num_stages;
      if (rules.allowed[c] && has_room && pick(20) == 0) rules.required.push_back(c);
    }
    for (int s = 0; s < num_stages; ++s) rules.limits.push_back(has_limits ? 5 + pick(60) : 1e9);
  }

  int num_nodes() const { return static_cast<int>(work.size()); }
  int num_stages() const { return static_cast<int>(rules.limits.size()); }

  partition::RangePrice price(int begin, int end, int stage) const {
    partition::RangePrice price{crossing[begin] + crossing[end], 0};
    for (int n = begin; n < end; ++n) {
      price.cost += work[n];
      price.bound += bytes[n] * (num_stages() - stage);
    }
    return price;
  }
};

class RandomCasePricer : public partition::RangePricer {
 public:
  explicit RandomCasePricer(const RandomCase& one) : case_(one) {}
  void begin(int first) override { begin_ = end_ = first; }
  void extend() override { ++end_; }
  partition::RangePrice price(int stage) const override { return case_.price(begin_, end_, stage); }

 private:
  const RandomCase& case_;
  int begin_ = 0, end_ = 0;
};

inline constexpr double kNoCuts = std::numeric_limits<double>::infinity();

/// The largest cost of a stage; kNoCuts where the cuts break a rule.
inline double cost_of(const RandomCase& one, std::vector<int> edges) {
  const auto has = [&](int cut) { return std::count(edges.begin(), edges.end(), cut) == 1; };
  if (static_cast<int>(edges.size()) + 1 != one.num_stages()) return kNoCuts;
  if (!std::all_of(one.rules.required.begin(), one.rules.required.end(), has)) return kNoCuts;
  edges.insert(edges.begin(), 0);
  edges.push_back(one.num_nodes());
  double cost = 0;
  for (int s = 0; s < one.num_stages(); ++s) {
    if (edges[s] >= edges[s + 1] || (s > 0 && !one.rules.allowed[edges[s]])) return kNoCuts;
    const partition::RangePrice price = one.price(edges[s], edges[s + 1], s);
    if (price.bound > one.rules.limits[s]) return kNoCuts;
    cost = std::max(cost, price.cost);
  }
  return cost;
}

/// The least cost of all partitions, by trying each.
inline double least_cost(const RandomCase& one, std::vector<int>& cuts) {
  if (static_cast<int>(cuts.size()) + 1 == one.num_stages()) return cost_of(one, cuts);
  double least = kNoCuts;
  for (int c = cuts.empty() ? 1 : cuts.back() + 1; c < one.num_nodes(); ++c) {
    cuts.push_back(c);
    least = std::min(least, least_cost(one, cuts));
    cuts.pop_back();
  }
  return least;
}

struct Exactness {
  int num_cases = 0;
  int num_impossible = 0;  ///< No partition keeps the rules, and the DP says so.
  int wrong = 0;
};

/// The DP against exhaustive search: the same least cost, by cuts that keep the rules.
inline Exactness compare_with_exhaustive(int num_cases, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Exactness result;
  for (int i = 0; i < num_cases; ++i) {
    const RandomCase one(random);
    std::vector<int> cuts;
    const double least = least_cost(one, cuts);
    RandomCasePricer pricer(one);
    const auto found = partition::cut_chain(pricer, one.rules);
    const double claimed = found ? found->cost : kNoCuts;
    const double real = found ? cost_of(one, found->cuts) : kNoCuts;
    ++result.num_cases;
    result.num_impossible += least == kNoCuts && !found ? 1 : 0;
    result.wrong += claimed == least && real == least ? 0 : 1;
  }
  return result;
}

}  // namespace trireme::benchmarks
