#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/partition/crowded_clock.h"
#include "trireme/plan/partition/stage_copies.h"
#include "trireme/plan/partition/stage_ranges.h"
#include "trireme/plan/partition/step_clock.h"
#include "trireme/plan/schedule/causes.h"
#include "trireme/plan/simulate/held_messages.h"
#include "trireme/plan/simulate/stage_tensors.h"

namespace trireme::partition {

/// Says of cuts what the forecast of the finished plan says: its step, and the memory of its ranks,
/// stage copies included. What depends on one stage alone is worked out once for each range of
/// nodes; a step costs the messages and actions of the plan, however long the graph is.
///
/// Where ranks have several stages, or replicas share state, it makes the plan and forecasts it.
class Estimator {
 public:
  using Cuts = std::vector<int>;

  /// problem, setting   must outlive this. Cuts make as many stages as the problem has.
  Estimator(const Problem& problem, const Setting& setting);

  /// most_us   of longer steps that is all that has to be known: some number above it may be said.
  double step_us(const Cuts& cuts, double most_us = kUnlimited);

  /// Of a rank of each stage when it holds most.
  std::vector<std::int64_t> peak_bytes(const Cuts& cuts);

  /// What the fullest rank holds at least: messages left out. Quick.
  std::int64_t least_peak_bytes(const Cuts& cuts);

  /// Likewise, what passes inside a forward or backward left out too: quicker, no more than the above.
  std::int64_t least_kept_bytes(const Cuts& cuts);

  /// Whether every stage stays within its limit even where all messages of a step are held at once, and all tensors
  /// of its microbatches: quick, but true is all that it can say for sure.
  bool surely_fits(const Cuts& cuts, const std::vector<std::int64_t>& limits);

  /// Whether it knows such plans without making them.
  bool is_lean() const { return problem_.is_estimated(); }

  bool splits_backwards() const { return splits_; }

  /// Whether ranks share cores: steps cost more to estimate, and differ less.
  bool is_crowded() const { return crowded_clock_.has_value(); }

  /// Actions that a step plays, as a measure of what it costs to estimate.
  std::int64_t num_actions() const;

 private:
  struct Stage {
    int begin = 0, end = 0;
    const StageRange* range = nullptr;
    std::vector<int> copies;                     ///< Positions, ascending.
    std::vector<graph::ValueId> received, sent;  ///< Ascending.
    std::int64_t tie_bytes = 0;                  ///< Sums that it receives.
    double further_elements = 0;                 ///< Of what it owns, in further sites.
  };

  /// A plan as far as cuts decide it.
  struct Shape {
    std::vector<Stage> stages;
    std::vector<schedule::Message> messages;  ///< Ascending.
    bool has_copies = false;
  };

  Shape shape(const Cuts& cuts);
  void choose_copies(Shape& shape);
  void add_values(Shape& shape);
  void add_ties(Shape& shape) const;
  static int stage_at(const Shape& shape, int position);
  bool makes(const Stage& stage, graph::ValueId value) const;

  std::int64_t bytes_of(const schedule::Message& message) const;
  profile::LinkKind kind(int from_stage, int to_stage, int replica) const;
  double link_us(profile::LinkKind kind, std::int64_t bytes);
  double small_us(const std::vector<int>& ranks) const;
  TimedStage timed(const Shape& shape, int stage);
  void add_weights(const Shape& shape, TimedStep& step) const;
  TimedStep timed(const Shape& shape);
  std::int64_t kept_bytes(const Shape& shape, const Stage& stage);
  const simulate::StageTensors& tensors(const Stage& stage);
  /// Of a rank of the stage, but for its messages, activations and what a pass adds to these.
  std::int64_t state_bytes(const Stage& stage) const;
  /// With these, but without messages.
  std::int64_t silent_bytes(const Shape& shape, int stage);
  /// Whether the stage may hold so much, whatever of its tensors is alive at once.
  bool surely_holds(const Shape& shape, int stage, std::int64_t limit) const;
  void read_tensors();
  std::int64_t held_bytes(graph::ValueId id) const;
  /// Of the messages that go back and forth in each microbatch.
  std::vector<simulate::SentBytes> sent_bytes(const Shape& shape) const;
  const schedule::Causes& causes(const std::vector<simulate::SentBytes>& sent);
  std::int64_t run_bytes(const Shape& shape, const std::vector<simulate::SentBytes>& sent,
                         int stage);
  std::int64_t frozen_bytes(const Stage& stage) const;
  std::int64_t batch_bytes(const Stage& stage) const;
  const Candidate& forecast(const Cuts& cuts);

  const Problem& problem_;
  const Setting& setting_;
  const graph::Graph& graph_;
  RangeRules rules_;
  StageRanges ranges_;
  schedule::Schedule schedule_;
  bool splits_;                                ///< The schedule, backwards.
  StepClock clock_;                            ///< Of one stage on each rank.
  std::optional<CrowdedClock> crowded_clock_;  ///< Where ranks share cores.
  StageCopies copies_;
  simulate::TensorRules tensor_rules_;
  std::vector<std::int64_t>
      tensors_before_;            ///< By position: at most all bytes that nodes before it make.
  std::int64_t batch_bytes_ = 0;  ///< Of a microbatch's fields.
  TimedStep step_;                ///< What every step has in common.
  std::vector<simulate::SumGroup> data_groups_;  ///< By stage: its replicas.
  std::vector<profile::LinkKind> kinds_;         ///< By stage, stage, replica.
  std::vector<int> last_consumer_;               ///< By value: scratch of `add_values`.
  std::map<std::pair<profile::LinkKind, std::int64_t>, double> known_links_;
  std::map<std::vector<StageCopies::Arrival>, std::vector<int>> known_copies_;
  std::map<std::vector<int>, simulate::StageTensors> known_tensors_;
  std::map<std::vector<int>, std::int64_t> known_runs_;
  std::vector<int> causes_paths_;  ///< What `causes_` is of.
  std::optional<schedule::Causes> causes_;
  Cuts forecast_cuts_;
  std::vector<Candidate> forecast_;  ///< Of `forecast_cuts_`; none or one.
};

}  // namespace trireme::partition
