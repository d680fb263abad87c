#include "trireme/engine/train/prefetch.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace trireme::train {

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

Prefetch::Place Prefetch::after(Place place) const {
  if (++place.index < order_.size()) return place;
  return {place.step + 1, 0};
}

Prefetch::Ready Prefetch::read(Place place) const {
  Ready ready{place, {}, nullptr};
  try {
    ready.batch = reader_.read(place.step, order_[place.index]);
  } catch (...) {
    ready.failure = std::current_exception();
  }
  return ready;
}

void Prefetch::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || (is_started_ && ready_.size() < depth_); });
    if (ends_) return;
    const int round = round_;
    const Place place = wanted_;
    wanted_ = after(place);
    lock.unlock();
    Ready ready = read(place);
    lock.lock();
    if (round == round_) ready_.push_back(std::move(ready));
    changed_.notify_all();
  }
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
  changed_.wait(lock, [this] { return !ready_.empty(); });
  Ready ready = std::move(ready_.front());
  ready_.pop_front();
  const bool is_half_empty = ready_.size() <= depth_ / 2;
  lock.unlock();
  waited_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  // Rarely: where cores are few, the thread that is woken takes the core of this one.
  if (is_half_empty) changed_.notify_all();
  next_ = after(next_);
  if (ready.failure) std::rethrow_exception(ready.failure);
  return std::move(ready.batch);
}

double Prefetch::take_waited_seconds() { return std::exchange(waited_seconds_, 0); }

}  // namespace trireme::train
