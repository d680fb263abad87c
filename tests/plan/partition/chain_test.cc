#include "trireme/plan/partition/chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace trireme::partition {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// A chain of random costs. The cost of a range is the sum of its nodes and of its ends, its bound
/// a sum that weighs more in early stages, as activations do.
struct Chain {
  std::vector<double> work, bytes, boundary;

  RangePrice price(int i, int j, int stage, int num_stages) const {
    const double work_sum = std::accumulate(work.begin() + i, work.begin() + j, 0.0);
    const double byte_sum = std::accumulate(bytes.begin() + i, bytes.begin() + j, 0.0);
    return {work_sum + boundary[i] + boundary[j], byte_sum * (num_stages - stage)};
  }
  int size() const { return static_cast<int>(work.size()); }
};

class ChainPricer : public RangePricer {
 public:
  ChainPricer(const Chain& chain, int num_stages) : chain_(chain), num_stages_(num_stages) {}
  void begin(int first) override { begin_ = end_ = first; }
  void extend() override { ++end_; }
  RangePrice price(int stage) const override {
    return chain_.price(begin_, end_, stage, num_stages_);
  }

 private:
  const Chain& chain_;
  int num_stages_;
  int begin_ = 0, end_ = 0;
};

/// Tries every partition.
class Exhaustive {
 public:
  Exhaustive(const Chain& chain, const ChainRules& rules) : chain_(chain), rules_(rules) {}

  double best() {
    place(0, 0, 0);
    return best_;
  }

 private:
  void place(int begin, std::size_t stage, double cost) {
    const int num_stages = static_cast<int>(rules_.limits.size());
    for (int end = begin + 1; end <= chain_.size(); ++end) {
      const bool is_last = static_cast<int>(stage) + 1 == num_stages;
      if (is_last != (end == chain_.size())) continue;
      if (!is_last && !rules_.allows(static_cast<int>(stage) + 1, end)) continue;
      const auto within = [&](int cut) { return begin < cut && cut < end; };
      if (std::any_of(rules_.required.begin(), rules_.required.end(), within)) continue;
      const RangePrice price = chain_.price(begin, end, static_cast<int>(stage), num_stages);
      if (price.bound > rules_.limits[stage]) continue;
      const double now = std::max(cost, price.cost);
      if (is_last) {
        best_ = std::min(best_, now);
      } else {
        place(end, stage + 1, now);
      }
    }
  }

  const Chain& chain_;
  const ChainRules& rules_;
  double best_ = kNoLimit;
};

/// The cost of given cuts, having checked that they keep the rules.
double cost_of(const std::vector<int>& cuts, const Chain& chain, const ChainRules& rules) {
  std::vector<int> edges = cuts;
  edges.insert(edges.begin(), 0);
  edges.push_back(chain.size());
  const int num_stages = static_cast<int>(rules.limits.size());
  EXPECT_EQ(static_cast<int>(edges.size()), num_stages + 1);
  for (const int cut : rules.required) EXPECT_TRUE(std::count(edges.begin(), edges.end(), cut));
  double cost = 0;
  for (int s = 0; s < num_stages; ++s) {
    EXPECT_LT(edges[s], edges[s + 1]);
    EXPECT_TRUE(s == 0 || rules.allows(s, edges[s]));
    const RangePrice price = chain.price(edges[s], edges[s + 1], s, num_stages);
    EXPECT_LE(price.bound, rules.limits[s]);
    cost = std::max(cost, price.cost);
  }
  return cost;
}

TEST(Chain, ReadsAsTheExampleInTheSource) {
  const Chain chain{{3, 1, 2, 4}, {0, 0, 0, 0}, {0, 0, 0, 0, 0}};
  ChainPricer pricer(chain, 2);
  const auto result = cut_chain(pricer, {std::vector<bool>(5, true), {}, {kNoLimit, kNoLimit}});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->cost, 6);
  EXPECT_EQ(result->cuts, std::vector<int>{2});
}

TEST(Chain, IsNothingWhereNothingFits) {
  const Chain chain{{1, 1}, {5, 5}, {0, 0, 0}};
  ChainPricer pricer(chain, 2);
  const std::vector<bool> all(3, true);
  EXPECT_FALSE(cut_chain(pricer, {all, {}, {9, 9}}).has_value());
  EXPECT_TRUE(cut_chain(pricer, {all, {}, {10, 5}}).has_value());
  EXPECT_FALSE(cut_chain(pricer, {{false, false, false}, {}, {kNoLimit, kNoLimit}}).has_value());
  EXPECT_FALSE(cut_chain(pricer, {all, {}, {kNoLimit, kNoLimit, kNoLimit}}).has_value());
  EXPECT_FALSE(cut_chain(pricer, {all, {}, {}}).has_value());
  EXPECT_FALSE(cut_chain(pricer, {{true}, {}, {kNoLimit}}).has_value());
}

/// Thousands of chains with ties (small whole costs), forbidden and required cuts, limits, places of single cuts.
TEST(Chain, IsTheExhaustiveOptimum) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto pick = [&random](int count) { return static_cast<int>(random() % count); };
  int num_impossible = 0;
  for (int round = 0; round < 5000; ++round) {
    const int n = 1 + pick(14), p = 1 + pick(4), largest = round % 2 == 0 ? 3 : 1000;
    Chain chain;
    ChainRules rules;
    for (int node = 0; node < n; ++node) {
      chain.work.push_back(pick(largest));
      chain.bytes.push_back(pick(10));
    }
    for (int cut = 0; cut <= n; ++cut) {
      chain.boundary.push_back(cut == 0 || cut == n ? 0 : pick(largest));
      rules.allowed.push_back(pick(4) != 0);
      if (cut > 0 && cut < n && rules.allowed[cut] && pick(16) == 0) rules.required.push_back(cut);
    }
    for (int s = 0; s < p; ++s) rules.limits.push_back(pick(3) == 0 ? kNoLimit : 20 + pick(80));
    for (int s = 1; s < p && pick(2) == 0; ++s) {
      rules.windows.assign(p - 1, {});
      CutWindow& window = rules.windows[pick(p - 1)];
      window.earliest = pick(n + 1);
      window.latest = window.earliest + pick(n);
    }
    ChainPricer pricer(chain, p);
    const auto result = cut_chain(pricer, rules);
    const double best = Exhaustive(chain, rules).best();
    ASSERT_EQ(result ? result->cost : kNoLimit, best) << "round " << round;
    if (result) {
      ASSERT_EQ(cost_of(result->cuts, chain, rules), best) << "round " << round;
    }
    num_impossible += result ? 0 : 1;
  }
  EXPECT_GT(num_impossible, 100);
  EXPECT_LT(num_impossible, 4000);
}

}  // namespace
}  // namespace trireme::partition
