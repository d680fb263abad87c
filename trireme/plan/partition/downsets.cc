#include "trireme/plan/partition/downsets.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace trireme::partition {
namespace {

constexpr double kNoWay = std::numeric_limits<double>::infinity();
constexpr double kRoundedUpwards = 1 + 1e-9;  // Sums in another order.

using Set = std::vector<bool>;  ///< By block.

/// T[s][D] and the D that it came from.
struct Reached {
  double us = kNoWay;
  int from = -1;
};

struct Downset {
  Set blocks;
  double work_us = 0;
  std::vector<Reached> best;  ///< By number of stages.
};

class DownsetCutter {
 public:
  DownsetCutter(const BlockGraph& graph, SetCost& cost, const DownsetRules& rules)
      : blocks_(graph.blocks()),
        cost_(cost),
        rules_(rules),
        least_us_(rules.most_us),
        by_size_(blocks_.size() + 1),
        is_done_(blocks_.back().end) {
    for (const BlockGraph::Block& block : blocks_) all_work_us_ += block.work_us;
    least_slowness_ = *std::ranges::min_element(rules.slowness);
    // Work that stages from one on can do, for each microsecond.
    speed_from_.assign(rules.num_stages + 1, 0);
    for (int s = rules.num_stages - 1; s >= 0; --s) {
      speed_from_[s] = speed_from_[s + 1] + 1 / rules.slowness[s];
    }
  }

  std::optional<std::vector<std::vector<int>>> cut() {
    const int nothing = downset(Set(blocks_.size()), 0, 0);
    downsets_[nothing].best[0].us = 0;
    for (std::size_t size = 0; size < blocks_.size(); ++size) {
      for (std::size_t i = 0; i < by_size_[size].size(); ++i) extend(by_size_[size][i]);
      if (num_steps_ > rules_.most_steps) return std::nullopt;
    }
    if (last_ < 0) return std::nullopt;
    std::vector<std::vector<int>> stages(rules_.num_stages);
    Set end(blocks_.size(), true);
    int at = last_;
    for (int s = rules_.num_stages - 1; s >= 0; --s) {
      const Set& begin = downsets_[at].blocks;
      for (std::size_t b = 0; b < end.size(); ++b) {
        if (end[b] && !begin[b]) stages[s].push_back(static_cast<int>(b));
      }
      end = begin;
      at = downsets_[at].best[s].from;
    }
    return stages;
  }

 private:
  int downset(const Set& blocks, double work_us, std::size_t size) {
    const auto [entry, is_new] = known_.try_emplace(blocks, static_cast<int>(downsets_.size()));
    if (is_new) {
      downsets_.push_back({blocks, work_us, std::vector<Reached>(rules_.num_stages)});
      by_size_[size].push_back(entry->second);
    }
    return entry->second;
  }

  /// With every set of further blocks as the next stage.
  void extend(int from) {
    from_ = from;
    now_ = downsets_[from].blocks;
    work_us_ = downsets_[from].work_us;
    stage_.clear();
    ready_.clear();
    num_before_.assign(blocks_.size(), 0);
    is_done_.assign(is_done_.size(), false);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (now_[b]) {
        std::fill(is_done_.begin() + blocks_[b].begin, is_done_.begin() + blocks_[b].end, true);
        continue;
      }
      num_before_[b] = std::ranges::count_if(blocks_[b].before, [&](int c) { return !now_[c]; });
      if (num_before_[b] == 0) ready_.insert(static_cast<int>(b));
    }
    const double rest_us = all_work_us_ - work_us_;
    const auto& best = downsets_[from].best;
    for (int s = 0; s < rules_.num_stages; ++s) {
      // Enough may be left for the stages that are left, and no more.
      if (best[s].us < least_us_ && rest_us <= least_us_ * kRoundedUpwards * speed_from_[s]) {
        can_be_last_ = can_be_last_ || s + 1 == rules_.num_stages;
        stages_.push_back(s);
      }
    }
    if (!stages_.empty()) add_blocks(-1, 0);
    stages_.clear();
    can_be_last_ = false;
  }

  /// Adds blocks after `last`: their numbers ascend, so that each set comes once.
  void add_blocks(int last, double stage_us) {
    for (auto next = ready_.upper_bound(last); next != ready_.end();
         next = ready_.upper_bound(last)) {
      if (++num_steps_ > rules_.most_steps) return;
      const int b = last = *next;
      const double us = stage_us + blocks_[b].work_us;
      if (us * least_slowness_ >= least_us_ * kRoundedUpwards) continue;
      add(b);
      offer();
      add_blocks(b, us);
      remove(b);
    }
  }

  void add(int b) {
    now_[b] = true;
    work_us_ += blocks_[b].work_us;
    stage_.push_back(b);
    ready_.erase(b);
    for (const int after : blocks_[b].after) {
      if (--num_before_[after] == 0) ready_.insert(after);
    }
    std::fill(is_done_.begin() + blocks_[b].begin, is_done_.begin() + blocks_[b].end, true);
  }

  void remove(int b) {
    now_[b] = false;
    work_us_ -= blocks_[b].work_us;
    stage_.pop_back();
    ready_.insert(b);
    for (const int after : blocks_[b].after) {
      if (num_before_[after]++ == 0) ready_.erase(after);
    }
    std::fill(is_done_.begin() + blocks_[b].begin, is_done_.begin() + blocks_[b].end, false);
  }

  /// The set of added blocks as a stage, the last one where it leaves none, and only then.
  void offer() {
    const bool leaves_none = ready_.empty();
    if (leaves_none && !can_be_last_) return;
    int known = -1;
    for (const int s : stages_) {
      if (leaves_none != (s + 1 == rules_.num_stages)) continue;
      const double before_us = downsets_[from_].best[s].us;
      if (before_us >= least_us_ || (!leaves_none && leaves_too_much(s + 1))) continue;
      num_steps_ += static_cast<std::int64_t>(stage_.size());
      const double us = std::max(before_us, cost_.time(positions(), is_done_, s).slowest_us());
      if (us >= least_us_) continue;
      if (leaves_none) {
        least_us_ = us;
        last_ = from_;
        continue;
      }
      if (known < 0) known = downset(now_, work_us_, size_of(now_));
      Reached& best = downsets_[known].best[s + 1];
      if (us < best.us) best = {us, from_};
    }
  }

  /// For the stages from `stage` on. Where no block is left this may say so of rounding alone.
  bool leaves_too_much(int stage) const {
    return all_work_us_ - work_us_ > least_us_ * kRoundedUpwards * speed_from_[stage];
  }

  static std::size_t size_of(const Set& set) { return std::ranges::count(set, true); }

  std::vector<int> positions() const {
    std::vector<int> all;
    for (const int b : stage_) {
      for (int p = blocks_[b].begin; p < blocks_[b].end; ++p) all.push_back(p);
    }
    return all;
  }

  const std::vector<BlockGraph::Block>& blocks_;
  SetCost& cost_;
  const DownsetRules& rules_;
  double least_us_;  ///< Slowest stage of the best so far.
  int last_ = -1;    ///< What it runs before its last stage.
  double all_work_us_ = 0, least_slowness_ = 1;
  std::vector<double> speed_from_;
  std::int64_t num_steps_ = 0;
  std::map<Set, int> known_;
  std::vector<Downset> downsets_;
  std::vector<std::vector<int>> by_size_;  ///< Downsets by number of blocks.

  // Of the downset that is extended.
  int from_ = -1;
  std::vector<int> stages_;  ///< That the added blocks can be.
  bool can_be_last_ = false;
  Set now_;  ///< With the added blocks.
  double work_us_ = 0;
  std::vector<int> stage_;  ///< Added, ascending.
  std::set<int> ready_;
  std::vector<std::int64_t> num_before_;  ///< By block: of those that are not in yet.
  std::vector<bool> is_done_;             ///< By position.
};

}  // namespace

std::optional<std::vector<std::vector<int>>> cut_downsets(const BlockGraph& graph, SetCost& cost,
                                                          const DownsetRules& rules) {
  return DownsetCutter(graph, cost, rules).cut();
}

}  // namespace trireme::partition
