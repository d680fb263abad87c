#include "trireme/engine/measure/held_measure.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trireme/engine/measure/forward_walk.h"
#include "trireme/engine/measure/range_runs.h"
#include "trireme/engine/memory/block_allocator.h"

namespace trireme::measure {
namespace {

constexpr std::int64_t kBeyondCaches = std::int64_t{256} << 20;
constexpr std::int64_t kMostHeld = 8;

/// Bytes that a microbatch keeps after its forward; the same on all ranks.
std::int64_t activation_bytes(const Subject& subject) {
  std::int64_t bytes = 0;
  subject.ranks.barrier();
  if (subject.ranks.is_first()) {
    RangeRuns runs(subject, {});
    runs.backward(runs.forward());  // what is made once is there
    const std::int64_t before = memory::memory_use().live_bytes;
    RangeRuns::Microbatch microbatch = runs.forward();
    bytes = memory::memory_use().live_bytes - before;
    runs.backward(std::move(microbatch));
  }
  subject.ranks.barrier();
  return std::stoll(subject.ranks.from_first(std::to_string(bytes)));
}

void run_held(RangeRuns& runs, std::int64_t count) {
  std::vector<RangeRuns::Microbatch> held;
  for (std::int64_t i = 0; i < count; ++i) held.push_back(runs.forward());
  for (RangeRuns::Microbatch& microbatch : held) runs.backward(std::move(microbatch));
}

double at_least_1(double held_us, double alone_us) {
  return alone_us > 0 ? std::max(1.0, held_us / alone_us) : 1;
}

}  // namespace

std::optional<profile::HeldTimes> measure_held(const Subject& subject,
                                               const RepeatOptions& options) {
  const WriteGuard writes(subject.recording);
  const std::int64_t bytes = activation_bytes(subject);
  if (bytes <= 0 || bytes >= kBeyondCaches) return std::nullopt;
  const std::int64_t count = std::clamp<std::int64_t>(kBeyondCaches / bytes, 2, kMostHeld);
  RangeRuns alone(subject, {}), held(subject, {});
  Repeats repeats(options);
  while (repeats.is_wanted()) {
    alone.backward(alone.forward());
    run_held(held, count);
    repeats.add(alone.take_time() + held.take_time());
  }
  alone.drop(options.num_warmups);
  held.drop(options.num_warmups * static_cast<int>(count));
  const std::vector<double> medians =
      subject.ranks.medians({median(alone.forward_us()[0]), median(held.forward_us()[0]),
                             median(alone.backward_us()[0]), median(held.backward_us()[0])});
  return profile::HeldTimes{.one_bytes = bytes,
                            .held_bytes = count * bytes,
                            .forward = at_least_1(medians[1], medians[0]),
                            .backward = at_least_1(medians[3], medians[2])};
}

}  // namespace trireme::measure
