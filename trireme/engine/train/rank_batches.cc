#include "trireme/engine/train/rank_batches.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "trireme/plan/layout/plan.h"
#include "trireme/plan/simulate/held_batches.h"

namespace trireme::train {
namespace {

int batches_ahead(std::int64_t batch_bytes, int num_kept) {
  return std::max(simulate::batches_ahead(batch_bytes), num_kept);
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Batch only(const Batch& batch, const std::vector<std::string>& fields) {
  Batch result;
  for (const std::string& field : fields) result.set(field, batch[field]);
  return result;
}

}  // namespace

Prefetch::Prefetch(const StepReader& reader, std::vector<std::int64_t> order, int depth)
    : reader_(reader), order_(std::move(order)), depth_(static_cast<std::size_t>(depth)) {
  if (order_.empty()) return;
  thread_ = std::make_unique<transport::LibraryThread>("prefetch", [this] { run(); });
}

Prefetch::~Prefetch() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
}

/// A step that is handed in may have fewer microbatches, but always its first.
Prefetch::Place Prefetch::after(Place place) const {
  while (++place.index < order_.size()) {
    if (!reader_.is_fed()) return place;
    if (reader_.size_of(place.step, order_[place.index]).samples > 0) return place;
  }
  return {place.step + 1, 0};
}

std::vector<data::Sample> Prefetch::announce(Place place) const {
  return reader_.announce(place.step, order_[place.index]);
}

void Prefetch::announce_after(Place place) {
  announced_.reset();
  if (reader_.is_fed()) return;  // it would wait for the next step before it reads this one
  try {
    const Place next = after(place);
    announced_ = Announced{next, announce(next)};
  } catch (...) {
    // Of that microbatch, whatever a source throws: it comes again when that one is read, and is its error then.
  }
}

Prefetch::Ready Prefetch::read(Place place) {
  Ready ready{place, reader_.is_fed() ? Place{place.step + 1, 0} : after(place), {}, nullptr};
  try {
    const bool is_known = announced_ && announced_->place == place;
    const auto samples = is_known ? std::move(announced_->samples) : announce(place);
    announce_after(place);
    ready.batch = reader_.read(place.step, samples);
    ready.next = after(place);  // what is known of the step now that it was read
  } catch (...) {
    ready.failure = std::current_exception();
  }
  return ready;
}

void Prefetch::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || may_read(); });
    if (ends_) return;
    const int round = round_;
    const Place place = wanted_;
    lock.unlock();
    const auto begin = std::chrono::steady_clock::now();
    Ready ready = read(place);
    const double seconds = seconds_since(begin);
    lock.lock();
    read_seconds_ += seconds;
    ++num_read_;
    if (round != round_) continue;  // somebody has begun elsewhere
    wanted_ = ready.next;
    ready_.push_back(std::move(ready));
    changed_.notify_all();
  }
}

bool Prefetch::may_read() const {
  const std::size_t most = is_held_ ? std::max<std::size_t>(1, depth_ / 2) : depth_;
  return is_started_ && ready_.size() < most;
}

void Prefetch::set_held(bool is_held) {
  bool wakes = false;
  {
    const std::scoped_lock lock(mutex_);
    const bool might = may_read();
    is_held_ = is_held;
    wakes = !might && may_read();
  }
  if (wakes) changed_.notify_all();
}

void Prefetch::start_at(std::int64_t step, std::int64_t microbatch) {
  const auto found = std::find(order_.begin(), order_.end(), microbatch);
  next_ = {step, static_cast<std::size_t>(found - order_.begin())};
  const std::scoped_lock lock(mutex_);
  wanted_ = next_;
  ready_.clear();
  ++round_;
  is_started_ = true;
  changed_.notify_all();
}

Batch Prefetch::take(std::int64_t step, std::int64_t microbatch) {
  if (std::find(order_.begin(), order_.end(), microbatch) == order_.end()) {
    return reader_.read(step, microbatch);
  }
  const auto begin = std::chrono::steady_clock::now();
  const bool is_next = is_started_ && next_.step == step && order_[next_.index] == microbatch;
  if (!is_next) start_at(step, microbatch);
  std::unique_lock lock(mutex_);
  num_ready_ += ready_.size();
  ++num_taken_;
  changed_.wait(lock, [this] { return !ready_.empty(); });
  Ready ready = std::move(ready_.front());
  ready_.pop_front();
  const bool is_half_empty = ready_.size() <= depth_ / 2;
  lock.unlock();
  waited_seconds_ += seconds_since(begin);
  // Rarely: where cores are few, the thread that is woken takes the core of this one.
  if (is_half_empty) changed_.notify_all();
  next_ = after(next_);
  if (ready.failure) std::rethrow_exception(ready.failure);
  return std::move(ready.batch);
}

StepReading Prefetch::take_reading() {
  StepReading reading{.waited_seconds = std::exchange(waited_seconds_, 0)};
  const std::size_t num_ready = std::exchange(num_ready_, 0);
  const std::size_t num_taken = std::exchange(num_taken_, 0);
  if (num_taken > 0) {
    reading.batches_ready = static_cast<double>(num_ready) / static_cast<double>(num_taken);
  }
  reading.batches_taken = static_cast<std::int64_t>(num_taken);
  const std::scoped_lock lock(mutex_);
  reading.read_seconds = std::exchange(read_seconds_, 0);
  reading.batches_read = std::exchange(num_read_, 0);
  return reading;
}

RankBatches::RankBatches(const StepReader& reader, const record::Recording& recording,
                         const RankStages& stages, const layout::Plan& plan,
                         const PlaceInMesh& place)
    : reader_(reader),
      graph_(recording.graph),
      stages_(stages),
      num_samples_(plan.batch.microbatch),
      num_replicas_(place.num_replicas),
      num_microbatches_(num_replicas_ * layout::num_microbatches_of_replica(plan)),
      first_(std::int64_t{place.index} * num_microbatches_),
      weights_(recording, stages.weighed_losses()),
      keeps_(
          weights_.reads_batch() && !stages.fields().empty() &&
          simulate::keeps_batches(simulate::batch_bytes(graph_, num_samples_), num_microbatches_)),
      prefetch_(reader, reading_order(),
                batches_ahead(simulate::batch_bytes(graph_, num_samples_),
                              keeps_ ? num_microbatches_ : 0)) {}

/// Global microbatches as a step reads them: for their weights, then for their forwards.
std::vector<std::int64_t> RankBatches::reading_order() const {
  std::vector<std::int64_t> order;
  for (int m = 0; weights_.reads_batch() && m < num_microbatches_; ++m) {
    order.push_back(first_ + m);
  }
  if (stages_.fields().empty() || keeps_) return order;
  const int each = num_microbatches_ / num_replicas_;
  for (int m = 0; m < each; ++m) {
    for (int r = 0; r < num_replicas_; ++r) order.push_back(first_ + std::int64_t{r} * each + m);
  }
  return order;
}

std::vector<std::vector<double>> RankBatches::weigh(std::int64_t step) {
  kept_.clear();
  num_taken_.clear();
  std::vector<std::vector<double>> weights;
  for (int m = 0; m < num_microbatches_; ++m) {
    const graph::BatchSize size = size_of(step, m);
    if (size.samples == 0) {
      weights.emplace_back(graph_.losses.size());
      continue;
    }
    const Batch batch = weights_.reads_batch() ? prefetch_.take(step, first_ + m) : Batch();
    weights.push_back(weights_.weights(batch, size));
    if (keeps_) kept_[m] = only(batch, stages_.fields());
  }
  return weights;
}

Batch RankBatches::take(std::int64_t step, int microbatch) {
  auto kept = kept_.find(microbatch);
  if (kept == kept_.end()) {
    kept = kept_.emplace(microbatch, prefetch_.take(step, first_ + microbatch)).first;
  }
  if (++num_taken_[microbatch] < stages_.num_readers()) return kept->second;
  num_taken_.erase(microbatch);
  return std::move(kept_.extract(kept).mapped());
}

StepReading RankBatches::take_reading() {
  StepReading reading = prefetch_.take_reading();
  if (reader_.is_fed()) return {.waited_seconds = reading.waited_seconds};
  for (const auto& [name, part] : reader_.take_parts()) {
    reading.bytes += part.bytes;
    if (name == "decode") reading.decode_seconds = std::chrono::duration<double>(part.time).count();
  }
  return reading;
}

}  // namespace trireme::train
