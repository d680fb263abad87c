#include <algorithm>

#include "trireme/kernels/normalization/layouts.h"

namespace trireme::kernels::internal::channels_last {
namespace {

constexpr std::int64_t kRun = 64;      // places whose sums are kept in f32
constexpr std::int64_t kBlock = 1024;  // places of a piece

std::int64_t count_places(const BatchNormShape& shape) { return shape.batch * shape.spatial; }
std::int64_t count_blocks(const BatchNormShape& shape) {
  return (count_places(shape) + kBlock - 1) / kBlock;
}

/// The sums of every place: of runs in f32, which are added in f64 to those of their block, and these from the left.
///
/// sum_run   `sum_run(first_place, num_places, first, second)` sets a run's sums of each channel.
template <typename SumRun>
std::vector<Sums> sum_places(const BatchNormShape& shape, const Spread& spread,
                             const SumRun& sum_run) {
  const std::int64_t channels = shape.channels;
  std::vector<std::vector<Sums>> blocks(count_blocks(shape));
  spread(std::ssize(blocks), [&](std::int64_t block) {
    std::vector<Sums> sums(channels);
    std::vector<float> first(channels), second(channels);
    const std::int64_t end = std::min((block + 1) * kBlock, count_places(shape));
    for (std::int64_t place = block * kBlock; place < end; place += kRun) {
      sum_run(place, std::min(kRun, end - place), first.data(), second.data());
      for (std::int64_t c = 0; c < channels; ++c) {
        sums[c].first += static_cast<double>(first[c]);
        sums[c].second += static_cast<double>(second[c]);
      }
    }
    blocks[block] = std::move(sums);
  });
  std::vector<Sums> total(channels);
  for (const std::vector<Sums>& block : blocks) {
    for (std::int64_t c = 0; c < channels; ++c) {
      total[c].first += block[c].first;
      total[c].second += block[c].second;
    }
  }
  return total;
}

/// Calls `body(first_place, rows)` for every block, the last one first: what was read last is still in the cache.
template <typename Body>
void for_each_block(const BatchNormShape& shape, const Spread& spread, const Body& body) {
  const std::int64_t num_blocks = count_blocks(shape);
  spread(num_blocks, [&](std::int64_t index) {
    const std::int64_t begin = (num_blocks - 1 - index) * kBlock;
    const std::int64_t num_places = std::min(kBlock, count_places(shape) - begin);
    body(begin, Rows{.num_places = num_places, .channels = shape.channels});
  });
}

}  // namespace

template <typename T>
std::vector<Moments> moments(const BatchNormShape& shape, const T* x, const Spread& spread) {
  const RowLoops<T>& loops = row_loops<T>();
  const std::int64_t n = shape.channels;
  const std::vector<Sums> sums = sum_places(
      shape, spread, [&](std::int64_t place, std::int64_t num_places, float* first, float* second) {
        loops.sums_last(x + place * n, x, {num_places, n}, first, second);
      });
  std::vector<Moments> all(n);
  for (std::int64_t c = 0; c < n; ++c) {
    const double mean = sums[c].first / static_cast<double>(count_places(shape));
    all[c] = {static_cast<double>(to_f32(x[c])) + mean, sums[c].second - mean * sums[c].first};
  }
  return all;
}

template <typename T>
void apply(const BatchNormShape& shape, const BatchNormForwardOf<T>& arrays, const Spread& spread) {
  const RowLoops<T>& loops = row_loops<T>();
  const std::int64_t n = shape.channels;
  std::vector<float> factor(n);
  for (std::int64_t c = 0; c < n; ++c) {
    factor[c] = arrays.gamma[c] * arrays.statistics.inverse_deviation[c];
  }
  const ForwardVectors terms{arrays.statistics.mean, factor.data(), arrays.beta};
  for_each_block(shape, spread, [&](std::int64_t place, const Rows& rows) {
    loops.apply_last(terms, arrays.x + place * n, at(arrays.residual, place * n), rows,
                     arrays.y + place * n, at(arrays.mask, place * words_of_row(n)));
  });
}

template <typename T>
std::vector<GradientSums> gradient_sums(const BatchNormShape& shape,
                                        const BatchNormBackwardOf<T>& arrays,
                                        const Spread& spread) {
  const RowLoops<T>& loops = row_loops<T>();
  const std::int64_t n = shape.channels;
  return sum_places(
      shape, spread, [&](std::int64_t place, std::int64_t num_places, float* first, float* second) {
        loops.gradient_sums_last(arrays.gradient_y + place * n,
                                 at(arrays.mask, place * words_of_row(n)), arrays.x + place * n,
                                 arrays.statistics.mean, {num_places, n}, first, second);
      });
}

template <typename T>
void gradient(const BatchNormShape& shape, const BatchNormBackwardOf<T>& arrays,
              const std::vector<GradientSums>& sums, const Spread& spread) {
  const RowLoops<T>& loops = row_loops<T>();
  const std::int64_t n = shape.channels;
  std::vector<float> factor(n), slope(n), offset(n);
  for (std::int64_t c = 0; c < n; ++c) {
    const Backward terms = backward_terms(arrays, c, sums[c]);
    factor[c] = terms.factor;
    slope[c] = terms.slope;
    offset[c] = terms.offset;
  }
  const BackwardVectors terms{arrays.statistics.mean, factor.data(), slope.data(), offset.data()};
  for_each_block(shape, spread, [&](std::int64_t place, const Rows& rows) {
    loops.gradient_last(terms, arrays.gradient_y + place * n,
                        at(arrays.mask, place * words_of_row(n)), arrays.x + place * n, rows,
                        arrays.gradient_x + place * n, at(arrays.gradient_residual, place * n));
  });
}

template std::vector<Moments> moments(const BatchNormShape&, const float*, const Spread&);
template void apply(const BatchNormShape&, const BatchNormForwardOf<float>&, const Spread&);
template std::vector<GradientSums> gradient_sums(const BatchNormShape&,
                                                 const BatchNormBackwardOf<float>&, const Spread&);
template void gradient(const BatchNormShape&, const BatchNormBackwardOf<float>&,
                       const std::vector<GradientSums>&, const Spread&);
template std::vector<Moments> moments(const BatchNormShape&, const Bf16*, const Spread&);
template void apply(const BatchNormShape&, const BatchNormForwardOf<Bf16>&, const Spread&);
template std::vector<GradientSums> gradient_sums(const BatchNormShape&,
                                                 const BatchNormBackwardOf<Bf16>&, const Spread&);
template void gradient(const BatchNormShape&, const BatchNormBackwardOf<Bf16>&,
                       const std::vector<GradientSums>&, const Spread&);

}  // namespace trireme::kernels::internal::channels_last
