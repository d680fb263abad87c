// The passes over rows of cross_entropy.h, for one set of instructions. Compiled by each_isa.h.

#ifndef TRIREME_ISA_NAMESPACE  // this file alone
#define TRIREME_ISA_NAMESPACE portable
#define TRIREME_PART_BYTES 16
#endif

#include "trireme/kernels/lanes.h"
#include "trireme/kernels/loss/cross_entropy.h"

namespace trireme::kernels::TRIREME_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kRunOfTerms = 1024;  // terms whose sum is kept in f32

/// The first `count` of 16, the others the first of all: they change no maximum.
Lanes load_or_first(const float* x, std::int64_t count, const Lanes& first) {
  if (count >= kLanes) return load(x);
  const std::uint32_t rest = (1U << count) - 1;
  return keep(rest, load_first(x, count)) + keep(~rest, first);
}

/// Of elements that are no NaN.
float largest(const float* x, std::int64_t n) {
  const Lanes first = all(x[0]);
  Lanes most = first;
  for (std::int64_t i = 0; i < n; i += kLanes) {
    most = larger(load_or_first(x + i, n - i, first), most);
  }
  return largest(most);
}

float log_sum(const float* x, std::int64_t n) {
  const float most = largest(x, n);
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += kRunOfTerms) {
    const std::int64_t end = begin + kRunOfTerms < n ? begin + kRunOfTerms : n;
    Lanes terms = all(0);
    for (std::int64_t i = begin; i < end; i += kLanes) {
      const Lanes own = exponential(load_first(x + i, end - i) - all(most));
      const std::uint32_t rest = end - i < kLanes ? (1U << (end - i)) - 1 : 0xFFFF;
      terms = terms + keep(rest, own);
    }
    total += static_cast<double>(sum(terms));
  }
  return most + static_cast<float>(__builtin_log(total));
}

void gradient(const float* x, std::int64_t n, float log_sum, float g, float* made) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    store_first(exponential(load_first(x + i, n - i) - all(log_sum)) * all(g), n - i, made + i);
  }
}

}  // namespace

constexpr internal::CrossEntropyLoops kCrossEntropyLoops = {log_sum, gradient};

}  // namespace trireme::kernels::TRIREME_ISA_NAMESPACE
