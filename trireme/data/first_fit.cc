#include "trireme/data/first_fit.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace trireme::data {

FirstFit::FirstFit(std::vector<std::int64_t> row_lengths, std::int64_t max_segments,
                   std::int64_t open_rows)
    : row_lengths_(std::move(row_lengths)), max_segments_(max_segments), open_rows_(open_rows) {}

bool FirstFit::has_room(const Row& row, std::span<const std::int64_t> lengths) const {
  return row.num_segments < max_segments_ &&
         std::ranges::equal(lengths, row.room, std::ranges::less_equal());
}

void FirstFit::add(std::span<const std::int64_t> lengths) {
  auto row = std::ranges::find_if(open_, [&](const Row& one) { return has_room(one, lengths); });
  if (row == open_.end()) {
    if (std::ssize(open_) == open_rows_) open_.pop_front();
    open_.push_back({.number = num_rows_++, .room = row_lengths_});
    row = std::prev(open_.end());
  }
  ++row->num_segments;
  for (std::size_t d = 0; d < lengths.size(); ++d) row->room[d] -= lengths[d];
  row_of_.push_back(row->number);
}

PackedRows FirstFit::finish() const {
  PackedRows rows;
  rows.begins.resize(static_cast<std::size_t>(num_rows_) + 1);
  for (const std::int64_t row : row_of_) ++rows.begins[static_cast<std::size_t>(row) + 1];
  std::partial_sum(rows.begins.begin(), rows.begins.end(), rows.begins.begin());
  rows.samples.resize(row_of_.size());
  std::vector<std::int64_t> next(rows.begins.begin(), std::prev(rows.begins.end()));
  for (std::size_t sample = 0; sample < row_of_.size(); ++sample) {
    const std::int64_t place = next[static_cast<std::size_t>(row_of_[sample])]++;
    rows.samples[static_cast<std::size_t>(place)] = static_cast<std::int64_t>(sample);
  }
  return rows;
}

}  // namespace trireme::data
