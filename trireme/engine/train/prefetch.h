#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "trireme/engine/train/step_reader.h"
#include "trireme/wire/system/thread.h"

namespace trireme::train {

/// Reads a rank's microbatches on a thread of its own, ahead of the training that takes them.
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

  /// Seconds that microbatches were waited for since the last call.
  double take_waited_seconds();

 private:
  /// A place in the endless sequence of steps and their microbatches.
  struct Place {
    std::int64_t step = 0;
    std::size_t index = 0;  ///< In order_.
    bool operator==(const Place&) const = default;
  };
  struct Ready {
    Place place;
    Batch batch;
    std::exception_ptr failure;
  };

  Place after(Place place) const;
  void run();
  Ready read(Place place) const;
  void start_at(std::int64_t step, std::int64_t microbatch);

  const StepReader& reader_;
  std::vector<std::int64_t> order_;
  std::size_t depth_;
  Place next_;  ///< That is taken next, in order.
  double waited_seconds_ = 0;

  std::mutex mutex_;  ///< Of all below.
  std::condition_variable changed_;
  std::deque<Ready> ready_;
  Place wanted_;   ///< That is read next.
  int round_ = 0;  ///< Counts starts: what was begun before one is thrown away.
  bool is_started_ = false;
  bool ends_ = false;
  std::unique_ptr<transport::LibraryThread> thread_;  ///< Null where the order is empty.
};

}  // namespace trireme::train
