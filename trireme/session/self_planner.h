#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trireme/session/planning.h"

namespace trireme::session {

/// Makes the plan of a training that was given none: by a measurement of these ranks, new or kept in
/// the run's folder. Every rank calls its methods.
class SelfPlanner {
 public:
  /// folder   of the run; empty: measurements are not kept.
  SelfPlanner(const SessionOptions& options, const collectives::World& world,
              std::filesystem::path folder)
      : options_(options), world_(world), folder_(std::move(folder)) {}

  /// A measurement of these ranks that was kept, or that the options name; the same answer on all
  /// ranks, the measurement on rank 0.
  bool has_measurement(const graph::Graph& graph);

  /// Keeps a new one.
  void keep(MeasuredCosts measurement);

  /// The best plan by the measurement, on every rank; on_plan is told of it.
  layout::Plan decide(const graph::Graph& graph, const PlannedCopies& copies);

  /// What the plan was made from; on rank 0.
  const std::optional<MeasuredCosts>& measurement() const { return measurement_; }

 private:
  std::string file_for(const std::string& what) const;
  std::string profile_file() const { return file_for("profile"); }
  std::string topology_file() const { return file_for("topology"); }
  MeasuredCosts named_measurement(const graph::Graph& graph) const;
  std::optional<MeasuredCosts> kept_measurement(const graph::Graph& graph,
                                                topology::Topology now) const;

  const SessionOptions& options_;
  const collectives::World& world_;
  std::filesystem::path folder_;
  std::optional<MeasuredCosts> measurement_;
};

}  // namespace trireme::session
