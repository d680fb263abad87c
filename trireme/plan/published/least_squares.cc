#include "trireme/plan/published/least_squares.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace trireme::published {

std::vector<double> solve(Matrix a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t r = i + 1; r < n; ++r) {
      if (std::abs(a[r][i]) > std::abs(a[pivot][i])) pivot = r;
    }
    std::swap(a[i], a[pivot]);
    std::swap(b[i], b[pivot]);
    if (a[i][i] == 0) continue;
    for (std::size_t r = i + 1; r < n; ++r) {
      const double factor = a[r][i] / a[i][i];
      for (std::size_t c = i; c < n; ++c) a[r][c] -= factor * a[i][c];
      b[r] -= factor * b[i];
    }
  }
  std::vector<double> x(n);
  for (std::size_t i = n; i-- > 0;) {
    double rest = b[i];
    for (std::size_t c = i + 1; c < n; ++c) rest -= a[i][c] * x[c];
    x[i] = a[i][i] == 0 ? 0 : rest / a[i][i];
  }
  return x;
}

}  // namespace trireme::published
