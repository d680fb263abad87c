#include "trireme/plan/partition/chain.h"

#include <algorithm>
#include <limits>

// Ranges are walked from every i upwards, i ascending, so that T[s][i] is final when i is reached.
// First some good partition is made by filling stages in order up to a cost, which is bisected:
// what costs more than that is no part of the best one, so most walks are a stage long. It also
// tells where a stage can begin at the earliest: what is left must go into the stages that are left.
//
//     costs 3 1 2 4, two stages    T[1] = 3 4 6 10    T[2][4] = min(3|7, 4|6, 6|4), | for max
//                                                              = 6, by the cut at 2 or at 3: 2

namespace trireme::partition {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();
constexpr int kBisections = 24;
constexpr double kRounding = 1 + 1e-9;  // Sums in another order.

/// T[s][j] and the i that it came from.
struct Best {
  double cost = kImpossible;
  int from = -1;
};

class ChainCutter {
 public:
  ChainCutter(RangePricer& pricer, const ChainRules& rules)
      : pricer_(pricer),
        rules_(rules),
        num_nodes_(static_cast<int>(rules.allowed.size()) - 1),
        num_stages_(static_cast<int>(rules.limits.size())),
        best_(num_stages_ + 1, std::vector<Best>(num_nodes_ + 1)),
        largest_limit_(*std::max_element(rules.limits.begin(), rules.limits.end())),
        latest_(num_stages_, num_nodes_),
        earliest_(num_stages_ + 1, 0) {
    best_[0][0].cost = 0;
    leave_room();
    bound_ = fill(kImpossible);
    double low = 0;
    for (int i = 0; i < kBisections && bound_ != kImpossible; ++i) {
      const double middle = (low + bound_) / 2;
      const double cost = fill(middle);
      if (cost == kImpossible) {
        low = middle;
      } else {
        bound_ = cost;
      }
    }
  }

  std::optional<ChainCuts> cut() {
    if (bound_ != kImpossible) find_earliest();
    for (int i = 0; i < num_nodes_; ++i) {
      if (can_begin(i)) walk(i);
    }
    if (best_[num_stages_][num_nodes_].cost == kImpossible) return std::nullopt;
    ChainCuts result{best_[num_stages_][num_nodes_].cost, {}};
    int at = num_nodes_;
    for (int s = num_stages_; s > 1; --s) result.cuts.push_back(at = best_[s][at].from);
    std::reverse(result.cuts.begin(), result.cuts.end());
    return result;
  }

 private:
  /// Every stage leaves places for the cuts after it.
  void leave_room() {
    int place = num_nodes_;
    for (int s = num_stages_ - 2; s >= 0; --s) {
      for (--place; place > 0 && !rules_.allows(s + 1, place);) --place;
      latest_[s] = std::max(place, 0);
    }
  }

  /// By number of stages: where those after them must begin at the earliest to hold the rest, none
  /// at a cost above the bound. Ranges that begin earlier cost as much at least, so one range that is too
  /// long tells of all of these.
  void find_earliest() {
    earliest_[num_stages_] = num_nodes_;
    int longest = 1;  // Of the stages so far.
    for (int s = num_stages_ - 1; s >= 0; --s) {
      const int end = earliest_[s + 1];
      int least = end, step = 2 * longest;  // `least` fits.
      while (least > 0 && fits(std::max(0, end - step), end)) {
        least = std::max(0, end - step);
        step *= 2;
      }
      int most = std::max(-1, end - step);  // Does not, or is none.
      if (least == 0) most = -1;
      while (least - most > 1) {
        const int middle = (least + most) / 2;
        (fits(middle, end) ? least : most) = middle;
      }
      earliest_[s] = least;
      longest = std::max(longest, end - least);
    }
  }

  /// Whether what is known of nodes [begin, end) lets a stage have them and more.
  bool fits(int begin, int end) {
    pricer_.begin(begin);
    for (int j = begin; j < end; ++j) {
      pricer_.extend();
      if (pricer_.least_cost() > bound_ * kRounding || is_too_much()) return false;
    }
    return true;
  }

  /// Whether no stage can have the range, nor more.
  bool is_too_much() const { return pricer_.least_bound() > largest_limit_ * kRounding; }

  /// The cost of a partition whose stages, in order, take as much as costs at most `most`;
  /// kImpossible where that is none.
  double fill(double most) {
    double cost = 0;
    int begin = 0;
    for (int s = 0; s < num_stages_; ++s) {
      const bool is_last = s + 1 == num_stages_;
      const int last = std::min(last_end(begin), latest_[s]);
      int end = begin;
      double taken = 0;
      pricer_.begin(begin);
      for (int j = begin + 1; j <= last && pricer_.least_cost() <= most && !is_too_much(); ++j) {
        pricer_.extend();
        if (j < num_nodes_ && (is_last || !rules_.allows(s + 1, j))) continue;
        const RangePrice price = pricer_.price(s);
        if (price.cost > most || price.bound > rules_.limits[s]) continue;
        end = j;
        taken = price.cost;
      }
      if (end == begin) return kImpossible;
      cost = std::max(cost, taken);
      begin = end;
    }
    return begin == num_nodes_ ? cost : kImpossible;
  }

  /// Where a range from `begin` must end at the latest.
  int last_end(int begin) const {
    const auto next = std::upper_bound(rules_.required.begin(), rules_.required.end(), begin);
    return next == rules_.required.end() ? num_nodes_ : *next;
  }

  /// Whether some partition of the first i nodes is to be continued.
  bool can_begin(int i) const {
    for (int s = 0; s < num_stages_; ++s) {
      if (best_[s][i].cost != kImpossible) return true;
    }
    return false;
  }

  void walk(int i) {
    // Stages that can begin here: reached, and with room for the rest.
    first_stage_ = num_stages_;
    last_stage_ = -1;
    for (int s = 0; s < num_stages_; ++s) {
      if (best_[s][i].cost == kImpossible || i < earliest_[s]) continue;
      first_stage_ = std::min(first_stage_, s);
      last_stage_ = s;
    }
    if (last_stage_ < 0) return;
    pricer_.begin(i);
    for (int j = i + 1, last = last_end(i); j <= last; ++j) {
      pricer_.extend();
      if (j < num_nodes_ && !rules_.allowed[j]) continue;
      for (int s = first_stage_; s <= last_stage_; ++s) offer(s, i, j);
      const double least = pricer_.least_cost();
      if (least > bound_ || least >= best_[num_stages_][num_nodes_].cost || is_too_much()) break;
    }
  }

  /// [i, j) as stage s. The last stage takes all the rest, and no other does.
  void offer(int s, int i, int j) {
    if (best_[s][i].cost == kImpossible || (s + 1 == num_stages_) != (j == num_nodes_) ||
        j < earliest_[s + 1] || (j < num_nodes_ && !rules_.allows(s + 1, j))) {
      return;
    }
    const RangePrice price = pricer_.price(s);
    if (price.bound > rules_.limits[s]) return;
    const double cost = std::max(best_[s][i].cost, price.cost);
    if (cost > bound_) return;
    Best& best = best_[s + 1][j];
    if (cost < best.cost) best = {cost, i};
  }

  RangePricer& pricer_;
  const ChainRules& rules_;
  int num_nodes_;
  int num_stages_;
  double bound_ = kImpossible;            ///< Cost of a partition that keeps the rules.
  std::vector<std::vector<Best>> best_;   ///< By number of stages, nodes.
  double largest_limit_;                  ///< Of `RangePrice::bound`.
  std::vector<int> latest_;               ///< By stage: where it must end.
  std::vector<int> earliest_;             ///< By stage: where it must begin.
  int first_stage_ = 0, last_stage_ = 0;  ///< That the ranges of a walk can be.
};

}  // namespace

std::optional<ChainCuts> cut_chain(RangePricer& pricer, const ChainRules& rules) {
  if (rules.limits.empty() || rules.allowed.size() < 2) return std::nullopt;
  return ChainCutter(pricer, rules).cut();
}

}  // namespace trireme::partition
