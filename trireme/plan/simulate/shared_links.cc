#include "trireme/plan/simulate/shared_links.h"

#include <algorithm>
#include <utility>

// Rates are found by filling: all transfers get the same bytes per microsecond on the link that they load most, the
// level, which rises until a transfer is as fast as it would be alone, or a link is full. What that holds back keeps
// its rate; the level of the others rises on. Three transfers of 1 byte over two links of 1 byte per microsecond, the
// first over both, the others over one each:
//
//     level 1/2   both links are full: each transfer has half a link, and takes 2 microseconds

namespace trireme::simulate {

SharedLinks::SharedLinks(std::vector<double> bytes_per_us, int num_queues)
    : bytes_per_us_(std::move(bytes_per_us)), queues_(num_queues) {}

void SharedLinks::add(int queue, Transfer transfer, double now) {
  queues_[queue].waiting.push_back(std::move(transfer));
  if (queues_[queue].is_busy) return;
  progress(now);
  begin_next(queue);
  share();
}

std::vector<int> SharedLinks::take_done(double now) {
  std::vector<int> done;
  // By the same expression as in `share`, so that rounding leaves nothing behind.
  for (const Flow& flow : flows_) {
    if (flow.done_us(since_us_) <= now) done.push_back(flow.queue);
  }
  if (done.empty()) return done;
  std::erase_if(flows_, [&](const Flow& flow) { return flow.done_us(since_us_) <= now; });
  progress(now);
  for (const int queue : done) {
    queues_[queue].is_busy = false;
    begin_next(queue);
  }
  share();
  return done;
}

void SharedLinks::begin_next(int index) {
  Queue& queue = queues_[index];
  if (queue.next == queue.waiting.size()) return;
  queue.is_busy = true;
  Flow flow{.queue = index, .transfer = std::move(queue.waiting[queue.next++])};
  for (const Load& load : flow.transfer.loads)
    flow.most_bytes = std::max(flow.most_bytes, load.bytes);
  const auto place = std::ranges::lower_bound(flows_, index, {}, &Flow::queue);
  flows_.insert(place, std::move(flow));
}

void SharedLinks::progress(double now) {
  // Below 0 by rounding, its end would be before `now`.
  for (Flow& flow : flows_) flow.left = std::max(0.0, flow.left - (now - since_us_) * flow.rate);
  since_us_ = now;
}

/// Gives every transfer its rate, and finds out which is done first.
void SharedLinks::share() {
  std::vector<double> free = bytes_per_us_;
  std::vector<bool> is_fixed(flows_.size());
  const auto fix = [&](std::size_t f, double rate) {
    is_fixed[f] = true;
    flows_[f].rate = rate;
    for (const Load& load : flows_[f].transfer.loads) free[load.link] -= rate * load.bytes;
  };
  double level = 0;
  for (std::size_t num_open = flows_.size(); num_open > 0;) {
    std::vector<double> asked(free.size());  // Of each link, for a level of 1.
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      if (is_fixed[f]) continue;
      for (const Load& load : flows_[f].transfer.loads)
        asked[load.link] += load.bytes / flows_[f].most_bytes;
    }
    level = std::max(level, next_level(free, asked, is_fixed));  // Rounding never lowers it.
    const std::vector<double> free_before = free;
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      if (is_fixed[f] || !is_held_back(flows_[f], level, free_before, asked)) continue;
      fix(f, level / flows_[f].most_bytes);
      --num_open;
    }
  }
  next_us_ = kNever;
  for (const Flow& flow : flows_) next_us_ = std::min(next_us_, flow.done_us(since_us_));
}

/// The least level at which a transfer is at its own speed or a link is full.
double SharedLinks::next_level(const std::vector<double>& free, const std::vector<double>& asked,
                               const std::vector<bool>& is_fixed) const {
  double level = kNever;
  for (std::size_t l = 0; l < free.size(); ++l) {
    if (asked[l] > 0) level = std::min(level, free[l] / asked[l]);
  }
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    if (!is_fixed[f]) level = std::min(level, flows_[f].most_level());
  }
  return level;
}

bool SharedLinks::is_held_back(const Flow& flow, double level, const std::vector<double>& free,
                               const std::vector<double>& asked) const {
  return flow.most_level() <= level ||
         std::ranges::any_of(flow.transfer.loads, [&](const Load& load) {
           return load.bytes > 0 && free[load.link] / asked[load.link] <= level;
         });
}

}  // namespace trireme::simulate
