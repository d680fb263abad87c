#include "tests/kernels/reference/norm.h"

#include <array>

#include "trireme/kernels/reduce/tree.h"

namespace trireme::kernels::reference {
namespace {

template <typename T>
double any_sum(const T* x, std::int64_t n) {
  std::array<double, 16> lanes{};
  for (std::int64_t i = 0; i < n; ++i) {
    const double square = static_cast<double>(x[i]) * static_cast<double>(x[i]);
    lanes[i % 16] += square;
  }
  for (const Merge merge : tree_merges(16)) lanes[merge.left] += lanes[merge.right];
  return lanes[0];
}

}  // namespace

double sum_of_squares(const float* x, std::int64_t n) { return any_sum(x, n); }
double sum_of_squares(const double* x, std::int64_t n) { return any_sum(x, n); }

}  // namespace trireme::kernels::reference
