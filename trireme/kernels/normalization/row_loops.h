// The passes over rows of rows.h, for one set of instructions. Compiled by each_isa.h.

#ifndef TRIREME_ISA_NAMESPACE  // this file alone
#define TRIREME_ISA_NAMESPACE portable
#define TRIREME_PART_BYTES 16
#endif

#include "trireme/kernels/lanes.h"
#include "trireme/kernels/normalization/rows.h"

namespace trireme::kernels::TRIREME_ISA_NAMESPACE {
namespace {

using internal::Backward;
using internal::BackwardVectors;
using internal::Forward;
using internal::ForwardVectors;
using internal::RowLoops;
using internal::Sums;

constexpr std::int64_t kRun = 1024;  // elements whose sum is kept in f32

Sums sums(const float* x, std::int64_t n, float shift) {
  Sums total;
  for (std::int64_t begin = 0; begin < n; begin += kRun) {
    const std::int64_t end = begin + kRun < n ? begin + kRun : n;
    Lanes first = all(0), second = all(0);
    std::int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      const Lanes d = load(x + i) - all(shift);
      first = first + d;
      second = second + d * d;
    }
    if (i < end) {
      const std::uint32_t rest = (1U << (end - i)) - 1;
      const Lanes d = keep(rest, load_first(x + i, end - i) - all(shift));
      first = first + d;
      second = second + d * d;
    }
    total.first += static_cast<double>(sum(first));
    total.second += static_cast<double>(sum(second));
  }
  return total;
}

template <bool HasResidual, bool HasMask>
void apply_row(const Forward& terms, const float* x, const float* residual, std::int64_t n,
               float* y, std::uint16_t* mask) {
  const Lanes mean = all(terms.mean), factor = all(terms.factor), bias = all(terms.bias);
  for (std::int64_t i = 0; i < n; i += kLanes) {
    Lanes t = (load_first(x + i, n - i) - mean) * factor + bias;
    if constexpr (HasResidual) t = t + load_first(residual + i, n - i);
    if constexpr (HasMask) {
      const std::uint32_t bits = above_or_nan(t, all(0));
      mask[i / kLanes] = static_cast<std::uint16_t>(bits);
      t = keep(bits, t);
    }
    store_first(t, n - i, y + i);
  }
}

void apply(const Forward& terms, const float* x, const float* residual, std::int64_t n, float* y,
           std::uint16_t* mask) {
  if (residual != nullptr && mask != nullptr) {
    apply_row<true, true>(terms, x, residual, n, y, mask);
  } else if (mask != nullptr) {
    apply_row<false, true>(terms, x, residual, n, y, mask);
  } else if (residual != nullptr) {
    apply_row<true, false>(terms, x, residual, n, y, mask);
  } else {
    apply_row<false, false>(terms, x, residual, n, y, mask);
  }
}

/// g: the gradient where the mask, if there is one, has a bit.
inline Lanes masked(const float* gradient, const std::uint16_t* mask, std::int64_t i,
                    std::int64_t n) {
  const Lanes g = load_first(gradient + i, n - i);
  return mask == nullptr ? g : keep(mask[i / kLanes], g);
}

Sums gradient_sums(const float* gradient, const std::uint16_t* mask, const float* x, std::int64_t n,
                   float mean) {
  Sums total;
  for (std::int64_t begin = 0; begin < n; begin += kRun) {
    const std::int64_t end = begin + kRun < n ? begin + kRun : n;
    Lanes first = all(0), second = all(0);
    for (std::int64_t i = begin; i < end; i += kLanes) {
      const Lanes g = masked(gradient, mask, i, end);
      first = first + g;
      second = second + g * (load_first(x + i, end - i) - all(mean));
    }
    total.first += static_cast<double>(sum(first));
    total.second += static_cast<double>(sum(second));
  }
  return total;
}

void gradient(const Backward& terms, const float* gradient, const std::uint16_t* mask,
              const float* x, std::int64_t n, float* gradient_x, float* gradient_residual) {
  const Lanes mean = all(terms.mean), factor = all(terms.factor);
  const Lanes slope = all(terms.slope), offset = all(terms.offset);
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const Lanes g = masked(gradient, mask, i, n);
    const Lanes d = load_first(x + i, n - i) - mean;
    store_first(factor * g + slope * d + offset, n - i, gradient_x + i);
    if (gradient_residual != nullptr) store_first(g, n - i, gradient_residual + i);
  }
}

void add_sums(const float* x, const float* shift, std::int64_t n, float* first, float* second) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const Lanes d = load_first(x + i, n - i) - load_first(shift + i, n - i);
    store_first(load_first(first + i, n - i) + d, n - i, first + i);
    store_first(load_first(second + i, n - i) + d * d, n - i, second + i);
  }
}

void apply_last(const ForwardVectors& terms, const float* x, const float* residual, std::int64_t n,
                float* y, std::uint16_t* mask) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t left = n - i;
    Lanes t = (load_first(x + i, left) - load_first(terms.mean + i, left)) *
                  load_first(terms.factor + i, left) +
              load_first(terms.bias + i, left);
    if (residual != nullptr) t = t + load_first(residual + i, left);
    if (mask != nullptr) {
      const std::uint32_t bits = above_or_nan(t, all(0));
      mask[i / kLanes] = static_cast<std::uint16_t>(bits);
      t = keep(bits, t);
    }
    store_first(t, left, y + i);
  }
}

void add_gradient_sums(const float* gradient, const std::uint16_t* mask, const float* x,
                       const float* mean, std::int64_t n, float* first, float* second) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t left = n - i;
    const Lanes g = masked(gradient, mask, i, n);
    const Lanes d = load_first(x + i, left) - load_first(mean + i, left);
    store_first(load_first(first + i, left) + g, left, first + i);
    store_first(load_first(second + i, left) + g * d, left, second + i);
  }
}

void gradient_last(const BackwardVectors& terms, const float* gradient, const std::uint16_t* mask,
                   const float* x, std::int64_t n, float* gradient_x, float* gradient_residual) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t left = n - i;
    const Lanes g = masked(gradient, mask, i, n);
    const Lanes d = load_first(x + i, left) - load_first(terms.mean + i, left);
    const Lanes dx = load_first(terms.factor + i, left) * g +
                     load_first(terms.slope + i, left) * d + load_first(terms.offset + i, left);
    store_first(dx, left, gradient_x + i);
    if (gradient_residual != nullptr) store_first(g, left, gradient_residual + i);
  }
}

}  // namespace

inline constexpr RowLoops kRowLoops = {sums,     apply,      gradient_sums,     gradient,
                                       add_sums, apply_last, add_gradient_sums, gradient_last};

}  // namespace trireme::kernels::TRIREME_ISA_NAMESPACE
