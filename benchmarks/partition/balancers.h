#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace trireme::benchmarks {

// Balancers that pipeline libraries use, from their descriptions. Each gives the nodes with which
// stages begin, but the first; stages may be empty.

/// As many nodes in each stage, give or take one.
inline std::vector<int> equal_counts(int num_nodes, int num_stages) {
  std::vector<int> cuts;
  for (int s = 1; s < num_stages; ++s) cuts.push_back(num_nodes * s / num_stages);
  return cuts;
}

/// Stages filled in order, each with as many nodes as keep its sum within `most`; the last takes
/// the rest.
inline std::vector<int> fill(const std::vector<double>& weights, int num_stages, double most) {
  std::vector<int> cuts;
  std::size_t at = 0;
  for (int s = 1; s < num_stages; ++s) {
    double sum = 0;
    while (at < weights.size() && sum + weights[at] <= most) sum += weights[at++];
    cuts.push_back(static_cast<int>(at));
  }
  return cuts;
}

/// The least `most` with which `fill` leaves no stage with more, by bisection to a thousandth of
/// the mean: how a popular library balances, by default with the number of parameters as weights.
inline std::vector<int> fill_evenly(const std::vector<double>& weights, int num_stages) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto fits = [&](double most) {
    const std::vector<int> cuts = fill(weights, num_stages, most);
    const double rest =
        std::accumulate(weights.begin() + (cuts.empty() ? 0 : cuts.back()), weights.end(), 0.0);
    return rest <= most;
  };
  double low = 0, high = total;
  while (high - low > 1e-3 * total / num_stages) {
    const double middle = (low + high) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return fill(weights, num_stages, high);
}

/// Block partition after Barany & Grinberg ("Block partitions of sequences", 2015), as a popular
/// pipeline library uses it: elements scaled to 0 .. 1; while some block is larger than the least
/// one by more than 1, the least block nearest to the largest takes one element from its neighbour
/// on that side. So sums end within the largest element of each other, which is not the optimum.
inline std::vector<int> block_partition(const std::vector<double>& weights, int num_stages) {
  const auto [least, most] = std::minmax_element(weights.begin(), weights.end());
  const double low = *least, span = std::max(*most - *least, 1e-30);
  std::vector<int> ends = equal_counts(static_cast<int>(weights.size()), num_stages);
  ends.push_back(static_cast<int>(weights.size()));
  const auto size = [&](int block) {
    double sum = 0;
    for (int n = block == 0 ? 0 : ends[block - 1]; n < ends[block]; ++n) {
      sum += (weights[n] - low) / span;
    }
    return sum;
  };
  constexpr int kMostMoves = 1'000'000;  // It ends by itself; this bounds it without a proof.
  for (int move = 0; move < kMostMoves; ++move) {
    std::vector<double> sizes;
    for (int b = 0; b < num_stages; ++b) sizes.push_back(size(b));
    const auto largest =
        static_cast<int>(std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
    int smallest = largest == 0 ? num_stages - 1 : 0;
    for (int b = 0; b < num_stages; ++b) {
      const bool is_nearer = std::abs(b - largest) < std::abs(smallest - largest);
      if (sizes[b] < sizes[smallest] || (sizes[b] == sizes[smallest] && is_nearer)) smallest = b;
    }
    if (sizes[largest] <= sizes[smallest] + 1) break;
    if (largest < smallest) {
      --ends[smallest - 1];
    } else {
      ++ends[smallest];
    }
  }
  ends.pop_back();
  return ends;
}

}  // namespace trireme::benchmarks
