#include "trireme/plan/partition/chain.h"

#include <algorithm>
#include <limits>

// Ranges are walked from every i upwards, i ascending, so that T[s][i] is final when i is reached.
// First some good partition is made by filling stages in order up to a cost, which is bisected:
// what costs more than that is no part of the best one, so most walks are a stage long.
//
//     costs 3 1 2 4, two stages    T[1] = 3 4 6 10    T[2][4] = min(3|7, 4|6, 6|4), | for max
//                                                              = 6, by the cut at 2 or at 3: 2

namespace trireme::partition {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();
constexpr int kBisections = 12;

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
        best_(num_stages_ + 1, std::vector<Best>(num_nodes_ + 1)) {
    best_[0][0].cost = 0;
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
  /// The cost of a partition whose stages, in order, take as much as costs at most `most`;
  /// kImpossible where that is none.
  double fill(double most) {
    double cost = 0;
    int begin = 0;
    for (int s = 0; s < num_stages_; ++s) {
      const bool is_last = s + 1 == num_stages_;
      const int last = is_last ? last_end(begin) : std::min(last_end(begin), num_nodes_ - 1);
      int end = begin;
      double taken = 0;
      pricer_.begin(begin);
      for (int j = begin + 1; j <= last && pricer_.least_cost() <= most; ++j) {
        pricer_.extend();
        if ((j < num_nodes_ && !rules_.allowed[j]) || (is_last && j < num_nodes_)) continue;
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
    pricer_.begin(i);
    for (int j = i + 1, last = last_end(i); j <= last; ++j) {
      pricer_.extend();
      if (j < num_nodes_ && !rules_.allowed[j]) continue;
      for (int s = 0; s < num_stages_; ++s) offer(s, i, j);
      const double least = pricer_.least_cost();
      if (least > bound_ || least >= best_[num_stages_][num_nodes_].cost) break;
    }
  }

  /// [i, j) as stage s. The last stage takes all the rest, and no other does.
  void offer(int s, int i, int j) {
    if (best_[s][i].cost == kImpossible || (s + 1 == num_stages_) != (j == num_nodes_)) return;
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
  double bound_ = kImpossible;           ///< Cost of a partition that keeps the rules.
  std::vector<std::vector<Best>> best_;  ///< By number of stages, nodes.
};

}  // namespace

std::optional<ChainCuts> cut_chain(RangePricer& pricer, const ChainRules& rules) {
  if (rules.limits.empty() || rules.allowed.size() < 2) return std::nullopt;
  return ChainCutter(pricer, rules).cut();
}

}  // namespace trireme::partition
