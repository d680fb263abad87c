#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "trireme/kernels/spread.h"

namespace trireme::tests {

using Bytes = std::vector<std::byte>;

template <typename T>
void append_bits(const std::vector<T>& values, Bytes& bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(values.data());
  bytes.insert(bytes.end(), begin, begin + values.size() * sizeof(T));
}

/// What `run` makes is the same on 1, 2 and 3 threads as on the calling thread, and is spread.
inline void expect_same_bits(const char* what,
                             const std::function<Bytes(const kernels::Spread&)>& run) {
  const Bytes expected = run(kernels::on_caller);
  ASSERT_FALSE(expected.empty()) << what;
  std::int64_t most_pieces = 0;
  const Bytes backwards = run([&](std::int64_t n, const kernels::Piece& piece) {
    most_pieces = std::max(most_pieces, n);
    for (std::int64_t i = n - 1; i >= 0; --i) piece(i);
  });
  EXPECT_GT(most_pieces, 1) << what << " is not spread";
  EXPECT_TRUE(backwards == expected) << what << ", last piece first";
  for (const int num_threads : {1, 2, 3}) {
    EXPECT_TRUE(run(kernels::on_threads(num_threads)) == expected) << what << ", " << num_threads;
  }
}

}  // namespace trireme::tests
