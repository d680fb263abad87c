#include "trireme/engine/train/reader_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trireme/error.h"
#include "trireme/wire/endpoint/endpoint.h"
#include "trireme/wire/system/thread.h"

namespace trireme::train {
namespace {

constexpr int kFirstStep = 3, kLastStep = 10;  // That are looked at, from 1 on.
constexpr double kEnough = 0.95;      // Of a step: reading that takes less is left as it is,
constexpr double kShareOfStep = 0.8;  // other reading gets threads that leave this much room.

int checked(int asked) {
  if (asked >= 0) return asked;
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("reader_threads is {}; give the threads that read the samples of a rank, "
                          "or 0 to have them chosen",
                          asked));
}

}  // namespace

int threads_that_keep_up(const ReadCost& cost, double step_seconds) {
  const double wanted = std::ceil(cost.seconds * cost.threads / step_seconds);
  constexpr double kMost = 1 << 20;  // Where a step is nothing: a number all the same.
  return static_cast<int>(std::clamp(wanted, 1.0, kMost));
}

ReaderThreads::ReaderThreads(int asked, int most)
    : count_(std::make_shared<std::atomic<int>>(std::max(checked(asked), 1))),
      most_(std::max(most, 1)),
      is_chosen_(asked == 0) {}

kernels::Spread ReaderThreads::spread() const {
  return [count = count_](std::int64_t n, const kernels::Piece& piece) {
    kernels::on_threads (*count)(n, piece);
  };
}

std::optional<std::string> ReaderThreads::add_step(const StepReading& reading,
                                                   double step_seconds) {
  ++num_steps_;
  if (!is_chosen_ || num_steps_ < kFirstStep || num_steps_ > kLastStep) return std::nullopt;
  computed_seconds_ += std::max(0.0, step_seconds - reading.waited_seconds);
  read_seconds_ += reading.read_seconds * count();
  num_read_ += reading.batches_read;
  num_taken_ += reading.batches_taken;
  if (num_read_ == 0 || num_taken_ == 0) return std::nullopt;
  const double steps = num_steps_ - kFirstStep + 1;
  const double of_step =
      read_seconds_ / static_cast<double>(num_read_) * (static_cast<double>(num_taken_) / steps);
  const double computed = computed_seconds_ / steps;
  if (of_step <= kEnough * computed * count()) return std::nullopt;
  const int wanted = std::min(threads_that_keep_up({of_step}, kShareOfStep * computed), most_);
  if (wanted <= count()) return std::nullopt;
  *count_ = wanted;
  return fmt::format(
      "reads samples with {} threads from step {} on: one takes {:.1f} ms for what a step takes, "
      "which computes for {:.1f} ms; there are {} cores for each rank; --reader-threads gives "
      "another number",
      wanted, num_steps_ + 1, of_step * 1e3, computed * 1e3, most_);
}

int threads_at_once(int asked, int cores) {
  return checked(asked) > 0 ? asked : std::max(cores, 1);
}

int num_local_ranks(const collectives::World& world) {
  return world.endpoint.local_peers().count() + 1;
}

int cores_of_rank(int num_local_ranks) {
  return std::max(1, transport::count_cores() / std::max(num_local_ranks, 1));
}

}  // namespace trireme::train
