#pragma once

#include <vector>

namespace trireme::published {

/// Rows of a small dense matrix.
using Matrix = std::vector<std::vector<double>>;

/// x of A x = b by elimination with pivots; unknowns without any weight become 0.
std::vector<double> solve(Matrix a, std::vector<double> b);

}  // namespace trireme::published
