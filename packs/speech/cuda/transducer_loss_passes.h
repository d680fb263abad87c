#pragma once

// The passes of transducer_loss.h.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "packs/speech/cuda/transducer_grid.h"
#include "packs/speech/cuda/transducer_loss.h"
#include "packs/speech/kernels/diagonals.h"
#include "packs/speech/kernels/rows.h"
#include "trireme/error.h"
#include "trireme/kernels/cuda/passes.h"
#include "trireme/kernels/exponential.h"
#include "trireme/kernels/half.h"

namespace trireme::speech::cuda::internal {

using namespace kernels;
using namespace kernels::cuda::internal;

using speech::internal::kNever;
using speech::internal::kRowBlock;
using speech::internal::Skewed;

/// Of one call.
struct LossSpace {
  LossSpace(Cutter cutter, const DeviceLattices& lattices, const DeviceTargets& targets)
      : grid{lattices},
        labels(targets.labels),
        vocabulary(targets.vocabulary),
        blank(targets.blank),
        blocks_of_row(count_parts(vocabulary, kRowBlock)),
        sample_bytes(Skewed::num_bytes(lattices.max_frames, lattices.max_labels + 1)),
        samples(cutter.take<std::byte>(sample_bytes * lattices.num_samples)),
        totals(cutter.take<double>(lattices.num_samples)),
        max(cutter.take<float>(grid.num_padded())),
        lanes(cutter.take<float>(grid.num_padded() * blocks_of_row * 16)),
        bytes(cutter.bytes()) {}

  TRIREME_HOST_DEVICE Skewed skewed(std::int64_t sample) const {
    return {samples + sample * sample_bytes, grid.lattices.num_frames[sample],
            grid.num_positions(sample)};
  }

  /// After a position that is not the last.
  TRIREME_HOST_DEVICE std::int64_t label(std::int64_t sample, std::int64_t position) const {
    return labels[sample * grid.lattices.max_labels + position];
  }

  Grid grid;
  const std::int32_t* labels;
  std::int64_t vocabulary, blank, blocks_of_row, sample_bytes;
  std::byte* samples;  ///< [B] Skewed
  double* totals;      ///< [B] log-probability of the labels.
  float* max;          ///< [padded rows]
  float* lanes;        ///< [padded rows, blocks_of_row, 16]
  std::int64_t bytes;
};

inline LossSpace loss_space(std::span<std::byte> workspace, const DeviceLattices& lattices,
                            const DeviceTargets& targets) {
  if (targets.blank < 0 || targets.blank >= targets.vocabulary) {
    throw Error(ErrorKind::kInvalidArgument, "transducer loss: blank " +
                                                 std::to_string(targets.blank) + " is not in [0, " +
                                                 std::to_string(targets.vocabulary) + ")");
  }
  const LossSpace cut(Cutter(workspace), lattices, targets);
  check_workspace("transducer loss", workspace, cut.bytes);
  return cut;
}

// ---- Forward

/// The largest of lane i % 16 of a row. A row's lanes are those of its first block.
template <typename T>
struct LaneMax {
  LossSpace space;
  const T* logits;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const GridRow at = space.grid.at(i / 16);
    if (!at.is_in_grid) return;
    const T* x = logits + at.row * space.vocabulary;
    float max = -std::numeric_limits<float>::infinity();
    for (std::int64_t k = i % 16; k < space.vocabulary; k += 16) {
      max = speech::internal::larger(to_f32(x[k]), max);
    }
    space.lanes[at.padded * space.blocks_of_row * 16 + i % 16] = max;
  }
};

struct RowMax {
  LossSpace space;

  TRIREME_HOST_DEVICE void operator()(std::int64_t padded) const {
    if (!space.grid.at(padded).is_in_grid) return;
    const float* lanes = space.lanes + padded * space.blocks_of_row * 16;
    float max = lanes[0];
    for (int lane = 1; lane < 16; ++lane) max = speech::internal::larger(lanes[lane], max);
    space.max[padded] = max;
  }
};

/// Lane i % 16 of a block of a row: the sum of exp(x - max).
template <typename T>
struct LaneSum {
  LossSpace space;
  const T* logits;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [padded, block] = divide(i / 16, space.blocks_of_row);
    const GridRow at = space.grid.at(padded);
    if (!at.is_in_grid) return;
    const T* x = logits + at.row * space.vocabulary;
    const float max = space.max[padded];
    const std::int64_t begin = block * kRowBlock;
    const std::int64_t end =
        space.vocabulary - begin < kRowBlock ? space.vocabulary : begin + kRowBlock;
    float sum = 0;
    for (std::int64_t k = begin + i % 16; k < end; k += 16) sum += decay(to_f32(x[k]) - max);
    space.lanes[i] = sum;
  }
};

/// Log-probabilities of a row, to its cell.
template <typename T>
struct RowCell {
  LossSpace space;
  const T* logits;

  TRIREME_HOST_DEVICE void operator()(std::int64_t padded) const {
    const GridRow at = space.grid.at(padded);
    if (!at.is_in_grid) return;
    double sum = 0;
    for (std::int64_t block = 0; block < space.blocks_of_row; ++block) {
      sum += static_cast<double>(
          tree_of_16(space.lanes + (padded * space.blocks_of_row + block) * 16));
    }
    const double log_sum = static_cast<double>(space.max[padded]) + std::log(sum);
    const Skewed s = space.skewed(at.sample);
    const std::int64_t cell = s.cell(at.frame, at.position);
    const bool has_label = at.position + 1 < s.positions;
    s.log_sum[cell] = static_cast<float>(log_sum);
    s.blank[cell] = log_probability(at, log_sum, space.blank);
    s.label[cell] =
        has_label ? log_probability(at, log_sum, space.label(at.sample, at.position)) : 0.0F;
  }

  TRIREME_HOST_DEVICE float log_probability(const GridRow& at, double log_sum,
                                            std::int64_t k) const {
    const float x = to_f32(logits[at.row * space.vocabulary + k]);
    return static_cast<float>(static_cast<double>(x) - log_sum);
  }
};

/// Step d: alpha of a sample's diagonal d, at position u.
struct Alpha {
  LossSpace space;

  TRIREME_HOST_DEVICE void operator()(std::int64_t sample, std::int64_t d, std::int64_t u) const {
    const Skewed s = space.skewed(sample);
    if (d >= s.num_diagonals() || u < s.first(d) || u > s.last(d)) return;
    const std::int64_t cell = d * s.positions + u, before = cell - s.positions;
    const auto by_blank = [&] { return s.alpha[before] + static_cast<double>(s.blank[before]); };
    const auto by_label = [&] {
      return s.alpha[before - 1] + static_cast<double>(s.label[before - 1]);
    };
    const bool has_blank = u < d, has_label = u > 0;
    s.alpha[cell] = has_blank && has_label ? speech::internal::log_add(by_blank(), by_label())
                    : has_blank            ? by_blank()
                    : has_label            ? by_label()
                                           : 0;
  }
};

struct SampleLoss {
  LossSpace space;
  float* loss;

  TRIREME_HOST_DEVICE void operator()(std::int64_t sample) const {
    const Skewed s = space.skewed(sample);
    const std::int64_t end = s.cell(s.frames - 1, s.positions - 1);
    const double total = s.alpha[end] + static_cast<double>(s.blank[end]);
    space.totals[sample] = total;
    loss[sample] = static_cast<float>(-total);
  }
};

template <typename T, typename Each>
void transducer_loss_passes(const DeviceLattices& lattices, const DeviceTargets& targets,
                            const T* logits, std::span<std::byte> workspace, float* loss,
                            const Each& each) {
  const LossSpace space = loss_space(workspace, lattices, targets);
  const std::int64_t num_rows = space.grid.num_padded();
  const std::int64_t positions = lattices.max_labels + 1;
  each(num_rows * 16, LaneMax<T>{space, logits});
  each(num_rows, RowMax{space});
  each(num_rows * space.blocks_of_row * 16, LaneSum<T>{space, logits});
  each(num_rows, RowCell<T>{space, logits});
  each.steps({lattices.num_samples, lattices.max_frames + positions - 1, positions}, Alpha{space});
  each(lattices.num_samples, SampleLoss{space, loss});
}

// ---- Backward

/// Beta and occupancies of a sample's diagonals, the last one first; step 0 is what lies behind it.
/// Two diagonals of beta take turns. Position `positions` is behind the grid.
struct Occupy {
  LossSpace space;

  TRIREME_HOST_DEVICE void operator()(std::int64_t sample, std::int64_t step,
                                      std::int64_t u) const {
    const Skewed s = space.skewed(sample);
    const std::int64_t d = s.num_diagonals() - step;
    if (d < 0 || u > s.positions) return;
    double* beta = s.beta[step % 2];
    const double* after = s.beta[(step + 1) % 2];
    if (step == 0) {
      beta[u] = u == s.positions - 1 ? 0 : kNever;
    } else if (u < s.first(d) || u > s.last(d)) {
      beta[u] = kNever;
    } else {
      const std::int64_t cell = d * s.positions + u;
      beta[u] = speech::internal::occupy_cell(s.alpha[cell] - space.totals[sample], after[u],
                                              after[u + 1], s.log_sum[cell], s.blank[cell],
                                              s.label[cell]);
    }
  }
};

/// Element i of the padded gradient.
template <typename T>
struct LogitGradient {
  LossSpace space;
  const T* logits;
  const float* loss_gradient;
  T* gradient;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [padded, k] = divide(i, space.vocabulary);
    const GridRow at = space.grid.at(padded);
    const std::int64_t element = at.row * space.vocabulary + k;
    if (at.is_in_grid) {
      const float scale = loss_gradient[at.sample];
      gradient[element] = speech::internal::from_f32<T>(scale * slope(at, k, element));
    } else if (!space.grid.is_packed()) {
      gradient[element] = T{};
    }
  }

  /// Of the loss.
  TRIREME_HOST_DEVICE float slope(const GridRow& at, std::int64_t k, std::int64_t element) const {
    const Skewed s = space.skewed(at.sample);
    const std::int64_t cell = s.cell(at.frame, at.position);
    const float shift = s.log_sum[cell];
    if (shift == speech::internal::kAllZero) return 0;
    if (k == space.blank) return s.blank[cell];
    const bool has_label = at.position + 1 < s.positions;
    if (has_label && k == space.label(at.sample, at.position)) return s.label[cell];
    return decay(to_f32(logits[element]) - shift);
  }
};

template <typename T, typename Each>
void transducer_loss_backward_passes(const DeviceLattices& lattices, const DeviceTargets& targets,
                                     const T* logits, std::span<std::byte> workspace,
                                     const float* loss_gradient, T* gradient, const Each& each) {
  const LossSpace space = loss_space(workspace, lattices, targets);
  const std::int64_t positions = lattices.max_labels + 1;
  each.steps({lattices.num_samples, lattices.max_frames + positions, positions + 1}, Occupy{space});
  each(space.grid.num_padded() * space.vocabulary,
       LogitGradient<T>{space, logits, loss_gradient, gradient});
}

}  // namespace trireme::speech::cuda::internal
