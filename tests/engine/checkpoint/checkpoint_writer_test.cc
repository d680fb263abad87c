#include "trireme/engine/checkpoint/checkpoint_writer.h"

#include <gtest/gtest.h>

#include <random>

#include "trireme/error.h"

namespace trireme::checkpoint {
namespace {

std::int64_t bytes_of(const std::vector<Piece>& pieces, const std::vector<Extent>& tensors) {
  std::int64_t bytes = 0;
  for (const Piece& piece : pieces) {
    bytes += (piece.end - piece.begin) * tensors[piece.tensor].row_bytes;
  }
  return bytes;
}

/// Every row is in one part, in order.
void expect_cover(const std::vector<std::vector<Piece>>& parts,
                  const std::vector<Extent>& tensors) {
  std::vector<std::int64_t> done(tensors.size());
  std::vector<int> pieces(tensors.size());
  for (const auto& part : parts) {
    for (const Piece& piece : part) {
      EXPECT_EQ(piece.begin, done[piece.tensor]);
      EXPECT_LE(piece.begin, piece.end);
      done[piece.tensor] = piece.end;
      ++pieces[piece.tensor];
    }
  }
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    EXPECT_EQ(done[t], tensors[t].rows);
    EXPECT_GE(pieces[t], 1) << "a tensor without rows is in a part too";
  }
}

TEST(Split, AnyTensorsAmongAnyNumber) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<Extent> tensors;
    std::int64_t largest_row = 0, total = 0;
    for (std::size_t t = random() % 6; t > 0; --t) {
      tensors.push_back(
          {static_cast<std::int64_t>(random() % 9), static_cast<std::int64_t>(random() % 5 * 4)});
      largest_row = std::max(largest_row, tensors.back().row_bytes);
      total += tensors.back().rows * tensors.back().row_bytes;
    }
    const int num_parts = 1 + static_cast<int>(random() % 5);
    const auto parts = split(tensors, num_parts);
    ASSERT_EQ(static_cast<int>(parts.size()), num_parts);
    expect_cover(parts, tensors);
    for (const auto& part : parts) {
      EXPECT_LE(bytes_of(part, tensors), total / num_parts + 1 + largest_row);
    }
  }
}

TEST(Split, CutsBetweenRows) {
  const std::vector<Extent> tensors = {{3, 8}, {1, 8}};
  EXPECT_EQ(split(tensors, 2),
            (std::vector<std::vector<Piece>>{{{0, 0, 2}}, {{0, 2, 3}, {1, 0, 1}}}));
  EXPECT_THROW(split(tensors, 0), Error);
}

}  // namespace
}  // namespace trireme::checkpoint
