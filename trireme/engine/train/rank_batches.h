#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "trireme/engine/program/weight_program.h"
#include "trireme/engine/train/batch_reader.h"
#include "trireme/engine/train/place_in_mesh.h"
#include "trireme/engine/train/rank_stages.h"
#include "trireme/engine/train/step_reading.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/wire/system/thread.h"

namespace trireme::train {

/// Reads a rank's microbatches on a thread of its own, ahead of the training that takes them. While it reads one, the source
/// knows the next.
///
/// Confined to the thread that takes.
class Prefetch {
 public:
  /// reader   outlives this.
  /// order    global microbatches in the order in which every step takes them; may be empty.
  /// depth    microbatches that are read ahead, at least 1.
  Prefetch(const StepReader& reader, std::vector<std::int64_t> order, int depth);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The microbatch; waits where it is not there yet. Whoever asks for another than the next in
  /// order starts the reading anew there.
  ///
  /// Errors   of the source.
  Batch take(std::int64_t step, std::int64_t microbatch);

  /// What it took since the last call, but for the parts of reading.
  StepReading take_reading();

  /// From `hold` to `release` no microbatch is begun while half of those that are read ahead, or one at least, are ready. One
  /// that is being read goes on. Twice is once.
  void hold() { set_held(true); }
  void release() { set_held(false); }

 private:
  /// A place in the endless sequence of steps and their microbatches.
  struct Place {
    std::int64_t step = 0;
    std::size_t index = 0;  ///< In order_.
    bool operator==(const Place&) const = default;
  };
  struct Ready {
    Place place;
    Place next;  ///< That is read after this one.
    Batch batch;
    std::exception_ptr failure;
  };

  struct Announced {
    Place place;
    std::vector<data::Sample> samples;
  };

  Place after(Place place) const;
  void run();
  void set_held(bool is_held);
  bool may_read() const;
  Ready read(Place place);
  std::vector<data::Sample> announce(Place place) const;
  void announce_after(Place place);
  void start_at(std::int64_t step, std::int64_t microbatch);

  const StepReader& reader_;
  std::vector<std::int64_t> order_;
  std::size_t depth_;
  Place next_;  ///< That is taken next, in order.
  double waited_seconds_ = 0;
  std::size_t num_ready_ = 0;  ///< When microbatches were asked for, added up.
  std::size_t num_taken_ = 0;
  std::optional<Announced> announced_;  ///< Of the reading thread: what it reads next, most likely.

  std::mutex mutex_;  ///< Of all below.
  std::condition_variable changed_;
  std::deque<Ready> ready_;
  Place wanted_;  ///< That is read next.
  double read_seconds_ = 0;
  std::int64_t num_read_ = 0;
  int round_ = 0;  ///< Counts starts: what was begun before one is thrown away.
  bool is_started_ = false;
  bool is_held_ = false;
  bool ends_ = false;
  std::unique_ptr<transport::LibraryThread> thread_;  ///< Null where the order is empty.
};

/// The microbatches of a rank, read ahead: for the weights of losses that its stages need, which
/// come before the step's first forward, and for its forwards. Where both take them, none is read
/// twice (simulate::keeps_batches); where several stages take them, they are kept from the first to the last.
/// A rank whose stages take no field reads nothing.
///
/// Confined to the thread that runs the step.
class RankBatches {
 public:
  /// reader, recording, stages   outlive this.
  RankBatches(const StepReader& reader, const record::Recording& recording,
              const RankStages& stages, const layout::Plan& plan, const PlaceInMesh& place);

  /// Weights of the losses, [microbatch][loss] (WeightProgram::weights); begins a step. NaN for
  /// those that the stage does not need.
  std::vector<std::vector<double>> weigh(std::int64_t step);

  /// Of a microbatch of the rank.
  graph::BatchSize size_of(std::int64_t step, int microbatch) const {
    return reader_.size_of(step, first_ + microbatch);
  }

  /// For the forward of a stage that takes fields, once for each in a step: the stages' fields at least.
  ///
  /// Errors   of the source.
  Batch take(std::int64_t step, int microbatch);

  int num_microbatches() const { return num_microbatches_; }

  /// Reading ahead is held back meanwhile (Prefetch::hold): for what all ranks wait for.
  class Held {
   public:
    explicit Held(RankBatches& batches) : batches_(batches) { batches_.prefetch_.hold(); }
    ~Held() { batches_.prefetch_.release(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

   private:
    RankBatches& batches_;
  };

  /// Global index of the rank's first.
  std::int64_t first_microbatch() const { return first_; }

  /// What reading took since the last call. Of samples that are handed in step by step only how long they were waited for:
  /// reading waits for them, too.
  StepReading take_reading();

 private:
  std::vector<std::int64_t> reading_order() const;

  const StepReader& reader_;
  const graph::Graph& graph_;
  const RankStages& stages_;
  std::int64_t num_samples_;  ///< Of a microbatch.
  int num_replicas_;          ///< That take turns.
  int num_microbatches_;
  std::int64_t first_;
  program::WeightProgram weights_;
  bool keeps_;                    ///< From `weigh` to `take`.
  std::map<int, Batch> kept_;     ///< By microbatch: the stages' fields.
  std::map<int, int> num_taken_;  ///< By microbatch that is kept: forwards that had it.
  Prefetch prefetch_;
};

}  // namespace trireme::train
