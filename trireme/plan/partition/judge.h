#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/partition/estimate.h"

namespace trireme::partition {

/// Says which cuts are better for a goal, and keeps account of what that has cost.
class Judge {
 public:
  using Cuts = std::vector<int>;

  /// problem, setting   must outlive this.
  Judge(const Problem& problem, const Setting& setting);

  /// Forgets which cuts were asked about, but not what is known of them.
  void begin(const Goal& goal);

  Score score(const Cuts& cuts);

  /// Cuts and their score. Where they surely fit, its secondary, the peak, may be left open: infinity.
  struct Scored {
    Cuts cuts;
    Score score;
  };

  Scored quickly_scored(const Cuts& cuts);

  /// The score where it is better than that of `best`; nothing where it is not, or the cuts were asked
  /// about since `begin`. Most cuts are ruled out by bounds. The peak may be left open.
  std::optional<Score> better(const Cuts& cuts, const Scored& best);

  /// Whether the score of `one` is less. Peaks that are open decide where all else is the same.
  bool is_less(const Scored& one, const Scored& other);

  double step_us(const Cuts& cuts) { return estimator_.step_us(cuts); }

  /// Of each stage.
  std::vector<std::int64_t> peak_bytes(const Cuts& cuts) { return estimator_.peak_bytes(cuts); }

  /// What was spent since `begin`, in actions that were played.
  std::int64_t spent() const { return spent_; }

  bool is_crowded() const { return estimator_.is_crowded(); }

  /// What one score costs.
  std::int64_t price() const;

 private:
  /// A use of a value with a gradient across a cut.
  struct Crossing {
    int producer = -1, consumer = -1;  ///< Positions; -1: nothing crosses.
  };

  void read_crossings();
  /// What a step with these cuts takes at least, by nodes alone: before the first forward of a stage
  /// the stage before it, if it waits for that one, has run one; after its last backward likewise.
  double step_bound_us(const Cuts& cuts) const;
  Score time_score(const Cuts& cuts, double most_us = kUnlimited);
  void add_memory(const Cuts& cuts, Score& score);
  Score closed(const Scored& scored);
  bool leaves_open(const Cuts& cuts);

  const Problem& problem_;
  const Setting& setting_;
  Estimator estimator_;
  std::vector<double> work_before_us_;  ///< By position: F and B of the nodes before it.
  std::vector<double>
      lead_before_us_;              ///< Likewise: what a stage does before and after the next one.
  std::vector<Crossing> shortest_;  ///< By cut: of the uses that cross it.
  std::vector<std::int64_t> limits_;  ///< By stage, bytes.
  std::vector<double> slowness_;      ///< By stage, of its fastest replica.
  bool is_long_ = false;              ///< Peaks cost more than steps.
  Goal goal_;
  std::set<Cuts> asked_;
  std::int64_t spent_ = 0;
};

}  // namespace trireme::partition
