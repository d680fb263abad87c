#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "trireme/engine/train/step_reading.h"
#include "trireme/kernels/spread.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::train {

/// What reading samples cost with some number of threads.
struct ReadCost {
  double seconds = 0;  ///< From the first to the last.
  int threads = 1;
};

/// Threads that read within `step_seconds` what took `cost`, as fast each as those; at least one.
int threads_that_keep_up(const ReadCost& cost, double step_seconds);

/// Threads that a rank reads its samples with: as many as are given, or as many as its first steps show to be needed. Samples
/// do not depend on it.
///
/// Chosen   After the third step and each up to the tenth, where reading a step's microbatches takes more than 95 % of the time
///          in which the step did anything but wait for them: as many as would have read them within 80 %. It grows only, up to
///          the cores there are: reading also gains where it takes turns with the step on a core. The first two steps are left
///          out, as stages are compared and captured there.
/// Threads  `add_step` is for one; what `spread` gives may be called by another meanwhile.
class ReaderThreads {
 public:
  /// asked   1 or more; 0: chosen.
  /// most    that are chosen, at least 1.
  /// Errors  kInvalidArgument for fewer than none.
  ReaderThreads(int asked, int most);

  int count() const { return *count_; }

  /// On as many threads as there are at the time of the call.
  kernels::Spread spread() const;

  /// What a step took. Returns what to say where their number changes.
  std::optional<std::string> add_step(const StepReading& reading, double step_seconds);

 private:
  std::shared_ptr<std::atomic<int>> count_;  // of all spreads, too
  int most_;
  bool is_chosen_;
  int num_steps_ = 0;
  // Of the steps that count:
  double computed_seconds_ = 0;  ///< Without waits for microbatches.
  double read_seconds_ = 0;      ///< As one thread would have taken.
  std::int64_t num_read_ = 0;    ///< Microbatches that were read.
  std::int64_t num_taken_ = 0;   ///< Those that steps took.
};

/// `asked`, or where that is 0 all cores of this rank: for reads that nothing is computed beside.
int threads_at_once(int asked, int cores);

/// Ranks of this host, with this one.
int num_local_ranks(const collectives::World& world);

/// Cores of this process for each of so many ranks of its host, at least one.
int cores_of_rank(int num_local_ranks);

}  // namespace trireme::train
