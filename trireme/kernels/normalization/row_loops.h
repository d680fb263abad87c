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
using internal::Rows;
using internal::Sums;

constexpr std::int64_t kRun = 1024;  // elements whose sum is kept in f32

/// Runs of lanes whose sums are kept in registers at a time.
constexpr int kGroups = TRIREME_PART_BYTES / 16;

template <typename T>
Sums sums(const T* x, std::int64_t n, float shift) {
  Sums total;
  for (std::int64_t begin = 0; begin < n; begin += kRun) {
    const std::int64_t end = begin + kRun < n ? begin + kRun : n;
    Lanes first = all(0), second = all(0);
    std::int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      const Lanes d = load_first(x + i, kLanes) - all(shift);
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

/// relu(t + residual), or without either.
template <bool HasResidual, bool HasMask, typename T>
inline void finish(Lanes t, const T* residual, std::int64_t left, T* y, std::uint16_t* mask) {
  if constexpr (HasResidual) t = t + load_first(residual, left);
  if constexpr (HasMask) {
    const std::uint32_t bits = above_or_nan(t, all(0));
    *mask = static_cast<std::uint16_t>(bits);
    t = keep(bits, t);
  }
  store_rounded(t, left, y);
}

template <bool HasResidual, bool HasMask, typename T>
void apply_row(const Forward& terms, const T* x, const T* residual, std::int64_t n, T* y,
               std::uint16_t* mask) {
  const Lanes mean = all(terms.mean), factor = all(terms.factor), bias = all(terms.bias);
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const Lanes t = (load_first(x + i, n - i) - mean) * factor + bias;
    finish<HasResidual, HasMask>(t, HasResidual ? residual + i : nullptr, n - i, y + i,
                                 HasMask ? mask + i / kLanes : nullptr);
  }
}

template <typename T>
void apply(const Forward& terms, const T* x, const T* residual, std::int64_t n, T* y,
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
template <typename T>
inline Lanes masked(const T* gradient, const std::uint16_t* mask, std::int64_t i, std::int64_t n) {
  const Lanes g = load_first(gradient + i, n - i);
  return mask == nullptr ? g : keep(mask[i / kLanes], g);
}

template <typename T>
Sums gradient_sums(const T* gradient, const std::uint16_t* mask, const T* x, std::int64_t n,
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

template <typename T>
void gradient(const Backward& terms, const T* gradient, const std::uint16_t* mask, const T* x,
              std::int64_t n, T* gradient_x, T* gradient_residual) {
  const Lanes mean = all(terms.mean), factor = all(terms.factor);
  const Lanes slope = all(terms.slope), offset = all(terms.offset);
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const Lanes g = masked(gradient, mask, i, n);
    const Lanes d = load_first(x + i, n - i) - mean;
    store_rounded(factor * g + slope * d + offset, n - i, gradient_x + i);
    if (gradient_residual != nullptr) store_first(g, n - i, gradient_residual + i);
  }
}

// ---- Channels last

/// Words of a row's mask.
inline std::int64_t words_of(const Rows& rows) { return (rows.channels + kLanes - 1) / kLanes; }

/// How many elements of a row are from channel `c` on, of those that are taken at a time.
template <int Groups>
inline std::int64_t left_of(const Rows& rows, std::int64_t c) {
  return Groups > 1 ? kLanes : rows.channels - c;
}

/// Of the channels of `Groups` runs of lanes from `begin` on, which are whole where there are several.
template <int Groups, typename T>
void sums_of_groups(const T* x, const T* shift, const Rows& rows, std::int64_t begin, float* first,
                    float* second) {
  Lanes shifts[Groups], a[Groups], b[Groups];
  for (int g = 0; g < Groups; ++g) {
    const std::int64_t c = begin + g * kLanes;
    shifts[g] = load_first(shift + c, left_of<Groups>(rows, c));
    a[g] = b[g] = all(0);
  }
  for (std::int64_t place = 0; place < rows.num_places; ++place) {
    const T* row = x + place * rows.channels;
    for (int g = 0; g < Groups; ++g) {
      const std::int64_t c = begin + g * kLanes;
      const Lanes d = load_first(row + c, left_of<Groups>(rows, c)) - shifts[g];
      a[g] = a[g] + d;
      b[g] = b[g] + d * d;
    }
  }
  for (int g = 0; g < Groups; ++g) {
    const std::int64_t c = begin + g * kLanes;
    store_first(a[g], left_of<Groups>(rows, c), first + c);
    store_first(b[g], left_of<Groups>(rows, c), second + c);
  }
}

template <typename T>
void sums_last(const T* x, const T* shift, const Rows& rows, float* first, float* second) {
  std::int64_t c = 0;
  for (; c + kGroups * kLanes <= rows.channels; c += kGroups * kLanes) {
    sums_of_groups<kGroups>(x, shift, rows, c, first, second);
  }
  for (; c < rows.channels; c += kLanes) sums_of_groups<1>(x, shift, rows, c, first, second);
}

template <bool HasResidual, bool HasMask, typename T>
void apply_rows(const ForwardVectors& terms, const T* x, const T* residual, const Rows& rows, T* y,
                std::uint16_t* mask) {
  const std::int64_t n = rows.channels;
  for (std::int64_t place = 0; place < rows.num_places; ++place) {
    for (std::int64_t c = 0; c < n; c += kLanes) {
      const std::int64_t at = place * n + c;
      const Lanes t = (load_first(x + at, n - c) - load_first(terms.mean + c, n - c)) *
                          load_first(terms.factor + c, n - c) +
                      load_first(terms.bias + c, n - c);
      finish<HasResidual, HasMask>(t, HasResidual ? residual + at : nullptr, n - c, y + at,
                                   HasMask ? mask++ : nullptr);
    }
  }
}

template <typename T>
void apply_last(const ForwardVectors& terms, const T* x, const T* residual, const Rows& rows, T* y,
                std::uint16_t* mask) {
  if (residual != nullptr && mask != nullptr) {
    apply_rows<true, true>(terms, x, residual, rows, y, mask);
  } else if (mask != nullptr) {
    apply_rows<false, true>(terms, x, residual, rows, y, mask);
  } else if (residual != nullptr) {
    apply_rows<true, false>(terms, x, residual, rows, y, mask);
  } else {
    apply_rows<false, false>(terms, x, residual, rows, y, mask);
  }
}

/// As sums_of_groups.
template <int Groups, typename T>
void gradient_sums_of_groups(const T* gradient, const std::uint16_t* mask, const T* x,
                             const float* mean, const Rows& rows, std::int64_t begin, float* first,
                             float* second) {
  Lanes means[Groups], a[Groups], b[Groups];
  for (int g = 0; g < Groups; ++g) {
    const std::int64_t c = begin + g * kLanes;
    means[g] = load_first(mean + c, left_of<Groups>(rows, c));
    a[g] = b[g] = all(0);
  }
  const std::int64_t num_words = words_of(rows);
  for (std::int64_t place = 0; place < rows.num_places; ++place) {
    const std::int64_t row = place * rows.channels;
    for (int group = 0; group < Groups; ++group) {
      const std::int64_t c = begin + group * kLanes, left = left_of<Groups>(rows, c);
      Lanes g = load_first(gradient + row + c, left);
      if (mask != nullptr) g = keep(mask[place * num_words + c / kLanes], g);
      a[group] = a[group] + g;
      b[group] = b[group] + g * (load_first(x + row + c, left) - means[group]);
    }
  }
  for (int g = 0; g < Groups; ++g) {
    const std::int64_t c = begin + g * kLanes;
    store_first(a[g], left_of<Groups>(rows, c), first + c);
    store_first(b[g], left_of<Groups>(rows, c), second + c);
  }
}

template <typename T>
void gradient_sums_last(const T* gradient, const std::uint16_t* mask, const T* x, const float* mean,
                        const Rows& rows, float* first, float* second) {
  std::int64_t c = 0;
  for (; c + kGroups * kLanes <= rows.channels; c += kGroups * kLanes) {
    gradient_sums_of_groups<kGroups>(gradient, mask, x, mean, rows, c, first, second);
  }
  for (; c < rows.channels; c += kLanes) {
    gradient_sums_of_groups<1>(gradient, mask, x, mean, rows, c, first, second);
  }
}

template <typename T>
void gradient_last(const BackwardVectors& terms, const T* gradient, const std::uint16_t* mask,
                   const T* x, const Rows& rows, T* gradient_x, T* gradient_residual) {
  const std::int64_t n = rows.channels;
  for (std::int64_t place = 0; place < rows.num_places; ++place) {
    for (std::int64_t c = 0; c < n; c += kLanes) {
      const std::int64_t left = n - c, at = place * n + c;
      Lanes g = load_first(gradient + at, left);
      if (mask != nullptr) g = keep(*mask++, g);
      const Lanes d = load_first(x + at, left) - load_first(terms.mean + c, left);
      const Lanes dx = load_first(terms.factor + c, left) * g +
                       load_first(terms.slope + c, left) * d + load_first(terms.offset + c, left);
      store_rounded(dx, left, gradient_x + at);
      if (gradient_residual != nullptr) store_first(g, left, gradient_residual + at);
    }
  }
}

}  // namespace

inline constexpr RowLoops<float> kFloatRowLoops = {
    sums<float>,      apply<float>,      gradient_sums<float>,      gradient<float>,
    sums_last<float>, apply_last<float>, gradient_sums_last<float>, gradient_last<float>};
inline constexpr RowLoops<Bf16> kBf16RowLoops = {
    sums<Bf16>,      apply<Bf16>,      gradient_sums<Bf16>,      gradient<Bf16>,
    sums_last<Bf16>, apply_last<Bf16>, gradient_sums_last<Bf16>, gradient_last<Bf16>};

}  // namespace trireme::kernels::TRIREME_ISA_NAMESPACE
