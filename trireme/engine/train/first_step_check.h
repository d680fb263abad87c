#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "trireme/base/log.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/record/recording.h"
#include "trireme/engine/train/batch_reader.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {

struct FirstStepOptions {
  std::uint64_t seed = 0;
  std::int64_t num_microbatches = 2;
  std::int64_t available_bytes = memory::available_bytes();
  std::filesystem::path scratch =
      {};  ///< Folder of what stages that offload keep; empty: in memory.
  std::function<void()> after_run = [] {};  ///< Called after each run; others may wait for it.
};

/// Runs a small step of the plain model, and of the stages of `plan` one after the other in this
/// process, and compares losses, buffers and every gradient: what a recording
/// or a cut has lost ends the run here, and not in weights that are wrong in silence.
///
/// Bit by bit; where autograd adds in another order (rounding.h), to rounding, and the stages then
/// have to give the bits of the uncut graph. The step is `num_microbatches` of four samples, or of
/// the microbatch size where that is less or the only one the recording holds for.
///
/// recorded   of the workload's model, without copies. Afterwards the model is as it was, its
///            parameters in other memory.
/// Returns    whether it was compared.
/// Errors     kInvalidArgument naming what differs, and whether recording or cut is to blame.
/// Cost       two or three steps of eight samples; three to four times the parameters' memory.
///            Skipped, with a line in the log, where that does not fit, and where all losses of the
///            samples tried weigh nothing or are not finite; where initialisation is deferred.
bool check_first_step(const Workload& workload, const record::Recording& recorded,
                      const layout::Plan& plan, const FirstStepOptions& options,
                      const Logger& logger);

}  // namespace trireme::train
