#pragma once

#include <optional>

#include "trireme/plan/partition/candidate.h"

namespace trireme::partition {

/// Looks for the best cuts under one setting:
///
///  1. the DP's cuts (chain.h) by estimated costs of ranges. Where the forecast of a stage does not
///     fit the device after all, its limit is lowered by what it exceeds and the DP runs again;
///  2. where no cuts fit by estimate, those of least memory;
///  3. from there, each cut, or two neighbours together, moves by 1, 2, 8 or 32 allowed places, as
///     long as the forecast improves; until none of these moves does.
///
/// What it returns may exceed limits: its score says by how much. Nothing where the graph has too
/// few allowed cuts.
class Search {
 public:
  /// problem, setting   must outlive this.
  Search(const Problem& problem, const Setting& setting);

  std::optional<Candidate> find(const Goal& goal) const;

 private:
  using Cuts = std::vector<int>;
  /// Of cuts first .. last by so many allowed places.
  struct Move {
    std::size_t first;
    std::size_t last;
    int distance;
  };

  std::optional<Candidate> fastest() const;
  std::optional<Candidate> smallest(const Goal& goal) const;
  std::optional<Candidate> least_memory(double max_stage_us) const;
  Candidate improve(Candidate best, const Goal& goal) const;
  std::vector<Move> moves() const;
  /// The cuts after the move; nothing where that cannot be.
  std::optional<Cuts> moved(const Cuts& cuts, const Move& move) const;
  /// Whether the step with these cuts may be better, by a bound that needs no forecast.
  bool may_improve(const Cuts& cuts, const Score& best, const Goal& goal) const;
  double step_bound_us(const Cuts& cuts) const;
  bool keeps_required(const Cuts& cuts) const;

  const Problem& problem_;
  const Setting& setting_;
  std::vector<bool> allowed_;
  std::vector<int> places_;             ///< Allowed cuts, ascending.
  std::vector<double> work_before_us_;  ///< By position: F and B of the nodes before it.
};

/// Cuts of a plan: where its stages begin, but the first.
std::vector<int> cuts_of(const layout::Plan& plan);

}  // namespace trireme::partition
