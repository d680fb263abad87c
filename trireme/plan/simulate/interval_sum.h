#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace trireme::simulate {

/// Sums of bytes over intervals of t.
class IntervalSum {
 public:
  explicit IntervalSum(int size) : change_(size + 1) {}

  /// To all t in [first, last]; nothing where that is empty.
  void add(int first, int last, std::int64_t bytes) {
    if (last < first) return;
    change_[first] += bytes;
    change_[last + 1] -= bytes;
  }

  /// By t.
  std::vector<std::int64_t> sums() const {
    std::vector<std::int64_t> sums(change_.size() - 1);
    std::partial_sum(change_.begin(), change_.end() - 1, sums.begin());
    return sums;
  }

 private:
  std::vector<std::int64_t> change_;
};

/// One pass, forward or backward. `passing` is what comes and goes within the stage; `held` belongs
/// to what is kept between the passes, or comes from outside.
struct Pass {
  explicit Pass(int size) : held(size), passing(size) {}

  std::int64_t peak() const {
    const std::vector<std::int64_t> a = held.sums(), b = passing.sums();
    std::int64_t most = 0;
    for (std::size_t t = 0; t < a.size(); ++t) most = std::max(most, a[t] + b[t]);
    return most;
  }

  IntervalSum held;
  IntervalSum passing;
};

}  // namespace trireme::simulate
