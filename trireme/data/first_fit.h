#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace trireme::data {

/// Which samples share a row, and their order there.
struct PackedRows {
  std::vector<std::int64_t> samples;  ///< Of all rows, one row behind the other.
  std::vector<std::int64_t> begins;   ///< Where each row begins among them, and the end.

  std::int64_t num_rows() const { return std::ssize(begins) - 1; }
  std::span<const std::int64_t> row(std::int64_t index) const {
    const auto r = static_cast<std::size_t>(index);
    return std::span(samples).subspan(static_cast<std::size_t>(begins[r]),
                                      static_cast<std::size_t>(begins[r + 1] - begins[r]));
  }
};

/// Fills rows by first-fit, sample after sample. Rows of 10, two of them open:
///
///     samples 4 7 5 6 3       4 | 7        7 has no room behind 4
///                             4 5 | 7      the first that has room
///                             7 | 6        6 has none: the oldest is closed, with 1 left
///                             7 3 | 6      rows: 4 5, 7 3, 6
///
/// Caller-synchronised. Cost of `add`: a look at each open row.
class FirstFit {
 public:
  /// row_lengths    of a row in each dimension.
  /// max_segments   samples of a row at most; open_rows: that are filled at a time. All positive.
  FirstFit(std::vector<std::int64_t> row_lengths, std::int64_t max_segments,
           std::int64_t open_rows);

  /// Puts in the next sample, of these lengths: none above a row's.
  void add(std::span<const std::int64_t> lengths);

  /// Rows in the order in which they were begun.
  PackedRows finish() const;

 private:
  struct Row {
    std::int64_t number = 0;
    std::int64_t num_segments = 0;
    std::vector<std::int64_t> room;  ///< In each dimension.
  };

  bool has_room(const Row& row, std::span<const std::int64_t> lengths) const;

  std::vector<std::int64_t> row_lengths_;
  std::int64_t max_segments_, open_rows_;
  std::deque<Row> open_;              // the oldest first
  std::vector<std::int64_t> row_of_;  // of each sample
  std::int64_t num_rows_ = 0;
};

}  // namespace trireme::data
