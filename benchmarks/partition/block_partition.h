#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace trireme::benchmarks {

/// Block partition after Barany & Grinberg ("Block partitions of sequences", 2015), as a popular
/// pipeline library uses it: elements scaled to 0 .. 1; while some block is larger than the least
/// one by more than 1, the least block nearest to the largest takes one element from its neighbour
/// on that side. So sums end within the largest element of each other, which is not the optimum. Stages may be empty.
///
/// Returns   the elements with which stages begin, but the first.
inline std::vector<int> block_partition(const std::vector<double>& weights, int num_stages) {
  const auto [least, most] = std::minmax_element(weights.begin(), weights.end());
  const double low = *least, span = std::max(*most - *least, 1e-30);
  const auto num_elements = static_cast<int>(weights.size());
  std::vector<int> ends;
  for (int s = 1; s <= num_stages; ++s) ends.push_back(num_elements * s / num_stages);
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
