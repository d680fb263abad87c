#pragma once

#include <optional>

#include "trireme/session/planning.h"
#include "trireme/session/run_keeper.h"
#include "trireme/session/self_planner.h"
#include "trireme/session/training.h"

namespace trireme::session {

/// Refuses what cannot be, and ranks that were started with other options than rank 0. Every rank
/// calls it.
void check_options(const SessionOptions& options, const collectives::World& world);

/// A training before its first step: recorded, planned, compared with the unmodified model. Every rank
/// makes one.
class Preparation {
 public:
  /// run   that is kept, which may be resumed; null where there is none. All outlive this.
  Preparation(const SessionOptions& options, const MakeWorkload& make,
              const collectives::World& world, const RunKeeper* run);

  const Training& training() const { return *training_; }
  const Plan& plan() const { return *plan_; }
  const Graph& graph() const { return *graph_; }

  /// Of the model in eval mode; null where there is no data for it.
  const record::Recording* evaluation() const { return evaluation_ ? &*evaluation_ : nullptr; }

  /// What the plan was made from; nothing where that is not known.
  std::optional<MeasuredCosts> measurement_of_plan() const;

 private:
  void say(const std::string& phase) const;
  void make_training();
  std::int64_t microbatch() const;
  void decide();
  layout::Plan choose_plan();
  void check_samples() const;
  void check_first_step() const;

  const SessionOptions& options_;
  const MakeWorkload& make_;
  const collectives::World& world_;
  const RunKeeper* run_;
  const bool is_first_;
  std::optional<Training> training_;
  std::optional<Graph> graph_;
  std::optional<record::Recording> evaluation_;
  std::optional<SelfPlanner> planner_;  ///< Where no plan was given.
  std::optional<Plan> plan_;
};

}  // namespace trireme::session
