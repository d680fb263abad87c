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

/// Two f32 sums of each channel, and the f64 ones that they are added to.
class RunningSums {
 public:
  explicit RunningSums(std::int64_t channels)
      : total(channels), first_(channels), second_(channels) {}

  float* first() { return first_.data(); }
  float* second() { return second_.data(); }

  void flush() {
    for (std::size_t c = 0; c < total.size(); ++c) {
      total[c].first += static_cast<double>(first_[c]);
      total[c].second += static_cast<double>(second_[c]);
    }
    std::ranges::fill(first_, 0.0F);
    std::ranges::fill(second_, 0.0F);
  }

  std::vector<Sums> total;

 private:
  std::vector<float> first_, second_;
};

/// The sums that `add(place, sums)` makes of every place: of blocks first, which are then added
/// from the left.
template <typename Add>
std::vector<Sums> sum_places(const BatchNormShape& shape, const Spread& spread, const Add& add) {
  std::vector<std::vector<Sums>> blocks(count_blocks(shape));
  spread(std::ssize(blocks), [&](std::int64_t block) {
    RunningSums sums(shape.channels);
    const std::int64_t end = std::min((block + 1) * kBlock, count_places(shape));
    for (std::int64_t place = block * kBlock; place < end; ++place) {
      add(place, sums);
      if ((place + 1) % kRun == 0) sums.flush();
    }
    sums.flush();
    blocks[block] = std::move(sums.total);
  });
  std::vector<Sums> total(shape.channels);
  for (const std::vector<Sums>& block : blocks) {
    for (std::int64_t c = 0; c < shape.channels; ++c) {
      total[c].first += block[c].first;
      total[c].second += block[c].second;
    }
  }
  return total;
}

/// Calls `body(place)` for every place, the last block first: what was read last is still in the
/// cache.
template <typename Body>
void for_each_place(const BatchNormShape& shape, const Spread& spread, const Body& body) {
  const std::int64_t num_blocks = count_blocks(shape);
  spread(num_blocks, [&](std::int64_t index) {
    const std::int64_t block = num_blocks - 1 - index;
    const std::int64_t end = std::min((block + 1) * kBlock, count_places(shape));
    for (std::int64_t place = block * kBlock; place < end; ++place) body(place);
  });
}

}  // namespace

std::vector<Moments> moments(const BatchNormShape& shape, const float* x, const Spread& spread) {
  const RowLoops& loops = row_loops();
  const std::int64_t n = shape.channels;
  const std::vector<Sums> sums =
      sum_places(shape, spread, [&](std::int64_t place, RunningSums& running) {
        loops.add_sums(x + place * n, x, n, running.first(), running.second());
      });
  std::vector<Moments> all(n);
  for (std::int64_t c = 0; c < n; ++c) {
    const double mean = sums[c].first / static_cast<double>(count_places(shape));
    all[c] = {static_cast<double>(x[c]) + mean, sums[c].second - mean * sums[c].first};
  }
  return all;
}

void apply(const BatchNormShape& shape, const BatchNormForward& arrays, const Spread& spread) {
  const RowLoops& loops = row_loops();
  const std::int64_t n = shape.channels;
  std::vector<float> factor(n);
  for (std::int64_t c = 0; c < n; ++c) {
    factor[c] = arrays.gamma[c] * arrays.statistics.inverse_deviation[c];
  }
  const ForwardVectors terms{arrays.statistics.mean, factor.data(), arrays.beta};
  for_each_place(shape, spread, [&](std::int64_t place) {
    loops.apply_last(terms, arrays.x + place * n, at(arrays.residual, place * n), n,
                     arrays.y + place * n, at(arrays.mask, place * words_of_row(n)));
  });
}

std::vector<GradientSums> gradient_sums(const BatchNormShape& shape,
                                        const BatchNormBackward& arrays, const Spread& spread) {
  const RowLoops& loops = row_loops();
  const std::int64_t n = shape.channels;
  return sum_places(shape, spread, [&](std::int64_t place, RunningSums& running) {
    loops.add_gradient_sums(arrays.gradient_y + place * n, at(arrays.mask, place * words_of_row(n)),
                            arrays.x + place * n, arrays.statistics.mean, n, running.first(),
                            running.second());
  });
}

void gradient(const BatchNormShape& shape, const BatchNormBackward& arrays,
              const std::vector<GradientSums>& sums, const Spread& spread) {
  const RowLoops& loops = row_loops();
  const std::int64_t n = shape.channels;
  std::vector<float> factor(n), slope(n), offset(n);
  for (std::int64_t c = 0; c < n; ++c) {
    const Backward terms = backward_terms(arrays, c, sums[c]);
    factor[c] = terms.factor;
    slope[c] = terms.slope;
    offset[c] = terms.offset;
  }
  const BackwardVectors terms{arrays.statistics.mean, factor.data(), slope.data(), offset.data()};
  for_each_place(shape, spread, [&](std::int64_t place) {
    loops.gradient_last(terms, arrays.gradient_y + place * n,
                        at(arrays.mask, place * words_of_row(n)), arrays.x + place * n, n,
                        arrays.gradient_x + place * n, at(arrays.gradient_residual, place * n));
  });
}

}  // namespace trireme::kernels::internal::channels_last
