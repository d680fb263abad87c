#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace trireme::partition {

/// What a range of nodes is worth as a stage. Smaller is better.
struct RangePrice {
  double cost = 0;   ///< The largest over all stages is minimised.
  double bound = 0;  ///< Must not exceed the stage's limit.
};

/// Prices ranges that begin at the same node and grow by one node at a time.
class RangePricer {
 public:
  virtual ~RangePricer() = default;

  /// The empty range before the node `first`.
  virtual void begin(int first) = 0;

  /// Takes one more node.
  virtual void extend() = 0;

  /// Of the range as stage `stage`, from 0.
  virtual RangePrice price(int stage) const = 0;

  /// A cost that no range with these nodes and more, before or after them, is below, in any stage.
  virtual double least_cost() const { return 0; }

  /// Likewise of bounds.
  virtual double least_bound() const { return 0; }
};

/// Where a stage may begin: at the earliest and at the latest.
struct CutWindow {
  int earliest = 0;
  int latest = std::numeric_limits<int>::max();

  bool contains(int cut) const { return earliest <= cut && cut <= latest; }
};

struct ChainRules {
  /// Element c, for c in 0 .. n: whether a stage may begin with node c. Elements 0 and n are not
  /// asked.
  std::vector<bool> allowed;
  std::vector<int> required;   ///< Cuts that must be made; ascending, each allowed.
  std::vector<double> limits;  ///< Of `RangePrice::bound`, by stage: as many as there are stages.
  std::vector<CutWindow> windows =
      {};  ///< By stage but the first; empty: stages may begin anywhere.

  /// Whether stage `stage`, from 1, may begin with node `cut`.
  bool allows(int stage, int cut) const {
    return allowed[cut] && (windows.empty() || windows[stage - 1].contains(cut));
  }
};

struct ChainCuts {
  double cost = 0;        ///< The largest of a stage.
  std::vector<int> cuts;  ///< Nodes with which stages begin, but the first; ascending.
};

/// Cuts a chain of n nodes into stages, none empty, such that the largest cost is least and every
/// bound is kept; nothing where none keeps them. Of several such partitions the one whose last cuts
/// are earliest.
///
/// Method   T[s][j], the least cost of the first j nodes in s stages:
///
///              T[s][j] = min over i of max(T[s-1][i], cost of [i, j) as stage s)
///
///          over allowed i and j and ranges within their limit. Exact for any prices.
/// Cost     n^2 / 2 steps of the pricer and p n^2 / 2 prices. Where `least_cost` or `least_bound`
///          rules out ranges that are longer than a stage of a good partition: about 2 n^2 / p
///          steps, and prices of those ranges and stages alone that a partition as good as that can
///          have.
/// Source   the recurrence of contiguous partitions: Pinar & Aykanat, J. Parallel Distrib. Comput.
///          64 (2004), section 2, with limits.
std::optional<ChainCuts> cut_chain(RangePricer& pricer, const ChainRules& rules);

}  // namespace trireme::partition
