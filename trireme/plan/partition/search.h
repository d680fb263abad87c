#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "trireme/plan/partition/cut_places.h"
#include "trireme/plan/partition/cut_rules.h"
#include "trireme/plan/partition/judge.h"

namespace trireme::partition {

/// What a search may spend, in actions of schedules that are played.
struct SearchEffort {
  std::int64_t exhaustive = 16'000'000;  ///< Up to that, all partitions are tried.
  std::int64_t moves = 24'000'000;       ///< Else so much for each goal.
};

/// Looks for the best cuts under one setting:
///
///  1. where all partitions can be tried, they are;
///  2. else it starts from several: the DP's cuts (chain.h) by estimated costs of ranges, whose
///     slowest stage is least within memory, those of least memory, and others that are handed in;
///  3. and from the best of these, each cut, or several neighbours together, moves by any number of
///     places, as long as the estimate (estimate.h) improves. Where no such move does, two
///     neighbours are put anywhere between theirs.
///
/// Where the options name another balance (balance.h), its cuts are all there is.
///
/// What it returns may exceed limits: its score says by how much. Nothing where the graph has too
/// few allowed cuts, or none that keep the rules.
class Search {
 public:
  using Cuts = std::vector<int>;

  /// problem, setting   must outlive this.
  Search(const Problem& problem, const Setting& setting, const SearchEffort& effort = {});

  using Found = Judge::Scored;

  /// starts      cuts to start from, beside its own; those that do not suit are left out.
  /// incumbent   a score that is known to be reached elsewhere: far from it, moves are not tried.
  std::optional<Found> find(const Goal& goal, const std::vector<Cuts>& starts = {},
                            const std::optional<Score>& incumbent = std::nullopt);

  /// Of cuts that were chosen elsewhere; nothing where they are none of this problem.
  std::optional<double> step_us(const Cuts& cuts);

 private:
  std::optional<Found> balanced();
  std::optional<Found> try_all();
  std::vector<Cuts> starts(const Goal& goal);
  std::vector<Cuts> fastest();
  std::optional<Cuts> least_memory(double max_stage_us);
  void improve(Found& best, std::int64_t part);
  void climb_on(std::vector<Found> climbed, Found& best);
  void move(Found& best, std::int64_t until);
  bool place_pairs(Found& best, std::int64_t until);
  bool place_pair(Found& best, std::size_t first, std::int64_t until);
  Cuts spread_cuts(double power) const;
  std::vector<CutMove> moves() const;
  ChainRules chain_rules(std::vector<double> limits) const;
  bool suits(const Cuts& cuts) const;

  const Problem& problem_;
  const Setting& setting_;
  SearchEffort effort_;
  Judge judge_;
  CutPlaces places_;
  CutRules rules_;
};

}  // namespace trireme::partition
