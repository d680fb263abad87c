#pragma once

// The sums over channels of batch_norm_passes.h. They keep the processors' order
// (normalization/row_loops.h, channels_last.cc), in three passes:
//
//                      channels first                        channels last
//     f32, of a run    16 lanes of 1,024 elements of a row   64 places of a channel
//     f64, of a part   the runs of a row                     16 runs: a block of 1,024 places
//     f64              the samples of a channel              the blocks of a channel

#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/kernels/cuda/passes.h"
#include "trireme/kernels/normalization/channel.h"

namespace trireme::kernels::cuda::internal {

using kernels::internal::Backward;
using kernels::internal::Moments;
using kernels::internal::Sums;

/// In f32, of a run.
struct Pair {
  float first, second;
};

/// Where the element is that a sum or an index is about.
struct NormPlace {
  std::int64_t element, channel, word;
  int bit;  ///< Of the mask's word.
};

struct NormRows {
  explicit NormRows(const BatchNormShape& shape)
      : channels(shape.channels),
        num_rows(shape.batch * (shape.has_channels_last ? shape.spatial : shape.channels)),
        width(shape.has_channels_last ? shape.channels : shape.spatial),
        num_words(count_parts(width, 16)),
        is_last(shape.has_channels_last) {}

  TRIREME_HOST_DEVICE NormPlace at(std::int64_t row, std::int64_t column) const {
    return {row * width + column, is_last ? column : divide(row, channels).rest,
            row * num_words + column / 16, static_cast<int>(column % 16)};
  }

  /// Each row begins at a multiple of 16, as the words of the mask do.
  std::int64_t num_padded() const { return num_rows * num_words * 16; }

  std::int64_t channels, num_rows, width, num_words;
  bool is_last;
};

// ---- Sums

/// x - x_0 and its square.
struct CentredPair {
  const float* x;
  std::int64_t shift_stride;  ///< From x_0 of a channel to that of the next.

  TRIREME_HOST_DEVICE Pair operator()(const NormPlace& place) const {
    const float d = x[place.element] - x[place.channel * shift_stride];
    return {d, d * d};
  }
};

TRIREME_HOST_DEVICE inline float masked(const BatchNormBackward& arrays, const NormPlace& place) {
  const bool passes = arrays.mask == nullptr || (arrays.mask[place.word] >> place.bit & 1) != 0;
  return passes ? arrays.gradient_y[place.element] : 0;
}

/// g and g (x - mean).
struct GradientPair {
  BatchNormBackward arrays;

  TRIREME_HOST_DEVICE Pair operator()(const NormPlace& place) const {
    const float g = masked(arrays, place);
    return {g, g * (arrays.x[place.element] - arrays.statistics.mean[place.channel])};
  }
};

constexpr std::int64_t kRowRun = 1024;   // elements, channels first
constexpr std::int64_t kPlaceRun = 64;   // places, channels last
constexpr std::int64_t kBlockRuns = 16;  // runs of a block of places

/// Lane i % 16 of a run of a row.
template <typename Terms>
struct RowRuns {
  Terms terms;
  NormRows rows;
  std::int64_t runs_of_row;
  Pair* pairs;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [row, run] = divide(i / 16, runs_of_row);
    const std::int64_t begin = run * kRowRun;
    const std::int64_t end = rows.width - begin < kRowRun ? rows.width : begin + kRowRun;
    Pair sum = {0, 0};
    for (std::int64_t column = begin + i % 16; column < end; column += 16) {
      const Pair term = terms(rows.at(row, column));
      sum.first += term.first;
      sum.second += term.second;
    }
    pairs[i] = sum;
  }
};

struct RowParts {
  const Pair* pairs;
  std::int64_t runs_of_row;
  Sums* parts;

  TRIREME_HOST_DEVICE void operator()(std::int64_t row) const {
    Sums total;
    for (std::int64_t run = row * runs_of_row; run < (row + 1) * runs_of_row; ++run) {
      float first[16], second[16];
      for (int lane = 0; lane < 16; ++lane) {
        first[lane] = pairs[run * 16 + lane].first;
        second[lane] = pairs[run * 16 + lane].second;
      }
      total.first += static_cast<double>(tree_of_16(first));
      total.second += static_cast<double>(tree_of_16(second));
    }
    parts[row] = total;
  }
};

/// Channel i % channels of a run of places.
template <typename Terms>
struct PlaceRuns {
  Terms terms;
  NormRows rows;
  Pair* pairs;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [run, channel] = divide(i, rows.channels);
    const std::int64_t begin = run * kPlaceRun;
    const std::int64_t end = rows.num_rows - begin < kPlaceRun ? rows.num_rows : begin + kPlaceRun;
    Pair sum = {0, 0};
    for (std::int64_t place = begin; place < end; ++place) {
      const Pair term = terms(rows.at(place, channel));
      sum.first += term.first;
      sum.second += term.second;
    }
    pairs[i] = sum;
  }
};

struct PlaceParts {
  const Pair* pairs;
  std::int64_t channels, num_runs;
  Sums* parts;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [block, channel] = divide(i, channels);
    const std::int64_t begin = block * kBlockRuns;
    const std::int64_t end = num_runs - begin < kBlockRuns ? num_runs : begin + kBlockRuns;
    Sums total;
    for (std::int64_t run = begin; run < end; ++run) {
      total.first += static_cast<double>(pairs[run * channels + channel].first);
      total.second += static_cast<double>(pairs[run * channels + channel].second);
    }
    parts[i] = total;
  }
};

/// The parts of a channel, from the left.
struct ChannelSums {
  const Sums* parts;
  std::int64_t channels, num_parts;

  TRIREME_HOST_DEVICE Sums operator()(std::int64_t channel) const {
    Sums total;
    for (std::int64_t part = 0; part < num_parts; ++part) {
      total.first += parts[part * channels + channel].first;
      total.second += parts[part * channels + channel].second;
    }
    return total;
  }
};

struct NormWorkspace {
  NormWorkspace(Cutter cutter, const BatchNormShape& shape)
      : rows(shape),
        num_runs(count_parts(shape.has_channels_last ? rows.num_rows : rows.width,
                             shape.has_channels_last ? kPlaceRun : kRowRun)),
        num_parts(shape.has_channels_last ? count_parts(num_runs, kBlockRuns) : shape.batch),
        num_pairs(num_runs * (shape.has_channels_last ? shape.channels : rows.num_rows * 16)),
        pairs(cutter.take<Pair>(num_pairs)),
        parts(cutter.take<Sums>(num_parts * shape.channels)),
        moments(cutter.take<Moments>(shape.channels)),
        values(cutter.take<double>(2 * shape.channels + 1)),
        backward(cutter.take<Backward>(shape.channels)),
        bytes(cutter.bytes()) {}

  NormRows rows;
  std::int64_t num_runs;   ///< Of a row, or of all places.
  std::int64_t num_parts;  ///< Of a channel.
  std::int64_t num_pairs;
  Pair* pairs;
  Sums* parts;
  Moments* moments;    ///< [channels]
  double* values;      ///< [2 channels + 1] for the ranks.
  Backward* backward;  ///< [channels]
  std::int64_t bytes;
};

inline NormWorkspace norm_workspace(std::span<std::byte> workspace, const BatchNormShape& shape) {
  const NormWorkspace cut(Cutter(workspace), shape);
  check_workspace("batch norm", workspace, cut.bytes);
  return cut;
}

template <typename Terms, typename Each>
ChannelSums sum_channels(const Terms& terms, const NormWorkspace& space, const Each& each) {
  const NormRows& rows = space.rows;
  if (rows.is_last) {
    each(space.num_pairs, PlaceRuns<Terms>{terms, rows, space.pairs});
    each(space.num_parts * rows.channels,
         PlaceParts{space.pairs, rows.channels, space.num_runs, space.parts});
  } else {
    each(space.num_pairs, RowRuns<Terms>{terms, rows, space.num_runs, space.pairs});
    each(rows.num_rows, RowParts{space.pairs, space.num_runs, space.parts});
  }
  return {space.parts, rows.channels, space.num_parts};
}

}  // namespace trireme::kernels::cuda::internal
