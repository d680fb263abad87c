#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "trireme/engine/program/stage_program.h"

namespace trireme::program {

/// The regions of a stage that recomputes (layout::Stage::regions), each a StageProgram: one, or several.
///
///     forward     F0 F1 F2             each lets go of what it made, but for what others take
///     backward    F2 B2 F1 B1 F0 B0    so that one region is held at a time
///
/// The second forward is the same nodes on the same numbers, random ones too (NodeStream), with gradients recorded both
/// times: some kernels differ where they are not. Statistics of norms are those of the first. A gradient goes from
/// region to region as from stage to stage, so that bits are those of the whole stage.
///
/// Immutable and thread-safe, but a run belongs to one thread at a time.
class StageRegions {
 public:
  /// As for StageProgram.
  StageRegions(const record::Recording& recording, const layout::Plan& plan, int stage,
               const SiteTable& sites, Capture capture);

  /// Leaves in `run` what a backward needs, and statistics.
  ///
  /// Returns   what other stages receive, and losses.
  ValueMap forward(StageRun& run, const MicrobatchInput& input, ValueMap received) const;

  /// As of StageProgram.
  ValueMap backward(StageRun& run, const ValueMap& seeds) const;
  ValueMap backward_inputs(StageRun& run, const ValueMap& seeds) const;
  void backward_weights(RegionRuns& runs) const;

  /// Moves all that is kept to a file in `folder`, and back. Errors   those of OffloadedTensors.
  static void offload(RegionRuns& runs, const std::filesystem::path& folder);
  static void fetch(RegionRuns& runs);

  /// Of all regions.
  CaptureReport capture_report() const;

 private:
  /// What is known of a region.
  struct Region {
    StageProgram program;
    std::set<graph::ValueId> seeded;   ///< Values whose gradient may come from elsewhere.
    std::set<graph::ValueId> last_of;  ///< Values that no region before it receives.
  };
  using Backward =
      std::function<ValueMap(const StageProgram& region, StageRun again, const ValueMap& seeds)>;

  at::Tensor alone(const at::Tensor& value, RegionRuns& runs) const;
  ValueMap received_by(const Region& region, ValueMap& kept, bool is_backward) const;
  StageRun run_again(std::size_t region, const StageRun& run) const;
  ValueMap in_reverse(StageRun& run, const ValueMap& seeds, const Backward& work) const;

  std::vector<Region> regions_;
  std::vector<std::string> fields_;
  std::set<graph::ValueId> inner_;  ///< Values that go from region to region.
  std::set<graph::ValueId> ends_;   ///< That it makes and are of use beyond its regions.
  std::set<const void*> model_;     ///< Storages.
};

}  // namespace trireme::program
