#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "trireme/engine/program/stage_program.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::program {

/// All stages of a plan in one process, a microbatch at a time: what the serial executor, and the
/// measurement of ranges, drive.
///
/// Caller-synchronised.
class StageChain {
 public:
  /// What runs in place of `run`: it calls it once. For clocks.
  using Around = std::function<void(int stage, const std::function<void()>& run)>;

  struct Options {
    std::filesystem::path scratch = {};  ///< Folder through which goes what stages that offload
                                         ///< keep; empty: it stays in memory.
    Capture capture = Capture::kOn;
  };

  /// recording, plan, sites   outlive this.
  StageChain(const record::Recording& recording, const layout::Plan& plan, const SiteTable& sites,
             Options options);

  /// A microbatch through all stages, each getting copies of what it receives: a run for each.
  std::vector<StageRun> forward(const MicrobatchInput& input, const Around& around = {});

  /// Back through all stages; gradients of parameters go to the sites' sink.
  ///
  /// runs     of `forward`.
  /// totals   weight of each loss over the step.
  void backward(std::vector<StageRun> runs, std::int64_t num_samples,
                const std::vector<double>& totals, const Around& around = {});

  const std::vector<StageProgram>& stages() const { return stages_; }

 private:
  const graph::Graph& graph_;
  std::vector<StageProgram> stages_;
  std::filesystem::path scratch_;
};

}  // namespace trireme::program
