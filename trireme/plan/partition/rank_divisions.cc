#include "trireme/plan/partition/rank_divisions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/schedule/step_facts.h"

// A rank that runs its stage for k replicas has k times the work. For given ranks by position the cuts under which the
// slowest rank has least are found by bisection: with a limit for each rank, every stage takes as many nodes as it may.
//
//     work    4 2 2 | 4      2 ranks, 1 rank: 4 each
//
// That is a bound for all plans of the division, and where its cuts begin.

namespace trireme::partition {
namespace {

constexpr std::size_t kMostDivisions = 20'000;  ///< That are looked at, of a number of ranks.
constexpr double kRoundedBy = 1e-9;

/// Adds all lists of so many of `parts` with this sum.
void add_divisions(const std::vector<int>& parts, int sum, int count, RanksByPosition& begun,
                   std::vector<RanksByPosition>& all) {
  if (all.size() >= kMostDivisions) return;
  if (count == 0) {
    if (sum == 0) all.push_back(begun);
    return;
  }
  for (const int part : parts) {
    if (part > sum - (count - 1)) break;
    begun.push_back(part);
    add_divisions(parts, sum - part, count - 1, begun, all);
    begun.pop_back();
  }
}

/// Of a division: whether each number of ranks divides the replicas, and has lanes that are one subtree.
bool keeps_bits(const PartitionOptions& options, const RanksByPosition& ranks) {
  const int replicas = *std::ranges::max_element(ranks);
  return options.batch.lanes % replicas == 0 && std::ranges::all_of(ranks, [&](int num) {
           return replicas % num == 0 &&
                  (options.forecast.program.tolerant || schedule::keeps_bits(options.batch, num));
         });
}

class Divider {
 public:
  /// speeds   of the ranks, in their order.
  Divider(const WorkChain& chain, const BatchLayout& batch, std::vector<double> speeds)
      : chain_(chain),
        num_microbatches_(static_cast<double>(batch.num_microbatches())),
        speeds_(std::move(speeds)) {}

  std::optional<Division> divide(const RanksByPosition& ranks) const {
    if (ranks.size() > chain_.cuts.size() + 1) return std::nullopt;
    std::vector<double> per_us;  // By position: work of one microbatch of all, in a microsecond.
    std::size_t next = 0;
    for (const int num : ranks) {
      double least = speeds_[next];
      for (int i = 0; i < num; ++i) least = std::min(least, speeds_[next++]);
      per_us.push_back(num * least / num_microbatches_);
    }
    double low = 0, high = chain_.total_us / least_of(per_us) * (1 + kRoundedBy);
    std::vector<std::size_t> best = cuts_within(per_us, high);
    constexpr int kHalvings = 40;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      std::vector<std::size_t> cuts = cuts_within(per_us, middle);
      (cuts.empty() ? low : high) = middle;
      if (!cuts.empty()) best = std::move(cuts);
    }
    if (best.empty()) return std::nullopt;
    return Division{ranks, best, low * (1 - kRoundedBy), guess_us(per_us, best)};
  }

 private:
  static double least_of(const std::vector<double>& numbers) {
    return *std::ranges::min_element(numbers);
  }

  double work_us(std::size_t position, const std::vector<std::size_t>& cuts) const {
    const double begin = position == 0 ? 0 : chain_.before_us[cuts[position - 1]];
    return (position == cuts.size() ? chain_.total_us : chain_.before_us[cuts[position]]) - begin;
  }

  /// Each position takes as much as it may in `limit_us`; none where that is not all.
  std::vector<std::size_t> cuts_within(const std::vector<double>& per_us, double limit_us) const {
    std::vector<std::size_t> cuts;
    double done = 0;
    for (std::size_t p = 0; p + 1 < per_us.size(); ++p) {
      const std::size_t least = cuts.empty() ? 0 : cuts.back() + 1;
      const std::size_t most = chain_.cuts.size() - (per_us.size() - 2 - p) - 1;
      const auto behind = std::upper_bound(chain_.before_us.begin(), chain_.before_us.end(),
                                           done + per_us[p] * limit_us);
      const auto far = static_cast<std::size_t>(behind - chain_.before_us.begin());
      if (far <= least) return {};
      cuts.push_back(std::min(far - 1, most));
      done = chain_.before_us[cuts.back()];
    }
    return chain_.total_us - done <= per_us.back() * limit_us ? cuts : std::vector<std::size_t>();
  }

  /// The slowest rank's work, and that of the others on one microbatch.
  double guess_us(const std::vector<double>& per_us, const std::vector<std::size_t>& cuts) const {
    double most = 0;
    for (std::size_t p = 0; p < per_us.size(); ++p) {
      const double work = work_us(p, cuts);
      most = std::max(most, work / per_us[p] + chain_.total_us - work);
    }
    return most;
  }

  const WorkChain& chain_;
  double num_microbatches_;
  std::vector<double> speeds_;
};

}  // namespace

WorkChain::WorkChain(const graph::Graph& planned, const profile::Profile& profile) {
  const std::vector<bool> allowed = graph::allowed_cuts(planned);
  double sum = 0;
  std::size_t position = 0;
  for (const profile::NodeTime& time : profile::node_times(profile, planned)) {
    if (position > 0 && allowed[position]) {
      cuts.push_back(static_cast<int>(position));
      before_us.push_back(sum);
    }
    sum += time.forward_us + time.backward_us();
    ++position;
  }
  total_us = sum;
}

std::vector<RanksByPosition> uneven_divisions(const PartitionOptions& options, int num_ranks,
                                              int most_positions) {
  std::vector<int> parts;
  for (int num = 1; num < num_ranks; ++num) {
    if (keeps_bits(options, {num})) parts.push_back(num);
  }
  std::vector<RanksByPosition> all;
  const int least = options.stages > 0 ? options.stages : 2;
  const int most = options.stages > 0 ? options.stages : kMostPositions;
  for (int positions = least; positions <= std::min(most, most_positions); ++positions) {
    RanksByPosition begun;
    add_divisions(parts, num_ranks, positions, begun, all);
  }
  std::erase_if(all, [&](const RanksByPosition& ranks) {
    return std::ranges::adjacent_find(ranks, std::ranges::not_equal_to()) == ranks.end() ||
           !keeps_bits(options, ranks);
  });
  return all;
}

std::vector<Division> promising_divisions(const Problem& whole, const WorkChain& chain,
                                          int num_ranks, std::size_t most) {
  std::vector<double> speeds;
  for (int r = 0; r < num_ranks; ++r) speeds.push_back(whole.topology.ranks[r].speed);
  const Divider divider(chain, whole.options.batch, speeds);
  std::vector<Division> divisions;
  for (const RanksByPosition& ranks :
       uneven_divisions(whole.options, num_ranks, static_cast<int>(chain.cuts.size()) + 1)) {
    if (std::optional<Division> one = divider.divide(ranks)) divisions.push_back(*std::move(one));
  }
  std::ranges::stable_sort(divisions, {}, &Division::guess_us);
  divisions.resize(std::min(divisions.size(), most));
  return divisions;
}

}  // namespace trireme::partition
