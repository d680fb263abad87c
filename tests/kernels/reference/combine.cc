#include "tests/kernels/reference/combine.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "trireme/error.h"
#include "trireme/kernels/half.h"
#include "trireme/kernels/reduce/tree.h"

namespace trireme::kernels::reference {
namespace {

template <typename T>
T merged_real(ReduceOp op, T a, T b) {
  const bool has_nan = std::isnan(a) || std::isnan(b);
  switch (op) {
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kMin:
      return has_nan ? std::numeric_limits<T>::quiet_NaN() : std::fmin(a, b);
    case ReduceOp::kMax:
      return has_nan ? std::numeric_limits<T>::quiet_NaN() : std::fmax(a, b);
    default:
      return a + b;
  }
}

/// Whole numbers as their bits, extended with their sign.
std::uint64_t merged_whole(ReduceOp op, std::uint64_t a, std::uint64_t b) {
  const bool is_less = static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
  switch (op) {
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kMin:
      return is_less ? a : b;
    case ReduceOp::kMax:
      return is_less ? b : a;
    case ReduceOp::kAnd:
      return a & b;
    case ReduceOp::kOr:
      return a | b;
    case ReduceOp::kXor:
      return a ^ b;
    default:
      return a + b;
  }
}

/// The element type as stored, the type that it is combined in, and how to go between them.
template <typename Stored, typename T, typename Load, typename Store>
struct Element {
  Load load;
  Store store;
  std::span<const double> scales = {};  ///< Of the sources, if there are any.

  template <typename Function>
  void combine(std::span<const std::byte* const> sources, std::byte* target, std::int64_t count,
               Function function) const {
    const auto merges = tree_merges(static_cast<int>(sources.size()));
    std::vector<T> values(sources.size());
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::size_t s = 0; s < sources.size(); ++s) {
        Stored stored;
        std::memcpy(&stored, sources[s] + i * sizeof(Stored), sizeof(Stored));
        values[s] = load(stored);
        if (!scales.empty()) values[s] = static_cast<T>(scales[s]) * values[s];
      }
      for (const Merge merge : merges) {
        values[merge.left] = function(values[merge.left], values[merge.right]);
      }
      const Stored result = store(values[0]);
      std::memcpy(target + i * sizeof(Stored), &result, sizeof(Stored));
    }
  }
};

template <typename Stored, typename T, typename Load, typename Store>
Element<Stored, T, Load, Store> element(Load load, Store store,
                                        std::span<const double> scales = {}) {
  return {load, store, scales};
}

}  // namespace

void combine(const ElementReduction& reduction, std::span<const std::byte* const> sources,
             std::byte* target, std::int64_t count) {
  const ReduceOp op = reduction.op;
  const int divisor = op == ReduceOp::kAverage ? static_cast<int>(sources.size()) : 1;
  const auto real = [&]<typename Stored, typename T>(auto load, auto round) {
    const auto store = [&](T x) { return round(x / static_cast<T>(divisor)); };
    const auto scales = op == ReduceOp::kScaledSum ? reduction.scales : std::span<const double>();
    element<Stored, T>(load, store, scales).combine(sources, target, count, [&](T a, T b) -> T {
      const T merged = merged_real(op, a, b);
      return op == ReduceOp::kRoundedSum ? load(round(merged)) : merged;
    });
  };
  const auto whole = [&]<typename Stored>(auto load, auto store) {
    element<Stored, std::uint64_t>(load, store)
        .combine(sources, target, count,
                 [op](std::uint64_t a, std::uint64_t b) { return merged_whole(op, a, b); });
  };
  const auto same = [](auto x) { return x; };
  const auto extended = [](auto x) { return static_cast<std::uint64_t>(std::int64_t{x}); };
  switch (reduction.dtype) {
    case Dtype::kF64:
      return real.operator()<double, double>(same, same);
    case Dtype::kF32:
      return real.operator()<float, float>(same, same);
    case Dtype::kF16:
      return real.operator()<F16, float>([](F16 x) { return to_f32(x); }, to_f16);
    case Dtype::kBf16:
      return real.operator()<Bf16, float>([](Bf16 x) { return to_f32(x); }, to_bf16);
    case Dtype::kI64:
      return whole.operator()<std::int64_t>(
          extended, [](std::uint64_t x) { return static_cast<std::int64_t>(x); });
    case Dtype::kI32:
      return whole.operator()<std::int32_t>(
          extended, [](std::uint64_t x) { return static_cast<std::int32_t>(x); });
    case Dtype::kI16:
      return whole.operator()<std::int16_t>(
          extended, [](std::uint64_t x) { return static_cast<std::int16_t>(x); });
    case Dtype::kI8:
      return whole.operator()<std::int8_t>(
          extended, [](std::uint64_t x) { return static_cast<std::int8_t>(x); });
    case Dtype::kU8:
      return whole.operator()<std::uint8_t>(
          extended, [](std::uint64_t x) { return static_cast<std::uint8_t>(x); });
    case Dtype::kBool:
      return whole.operator()<std::uint8_t>(
          [](std::uint8_t x) { return std::uint64_t{x != 0}; },
          [](std::uint64_t x) { return static_cast<std::uint8_t>(x != 0); });
    default:
      throw Error(ErrorKind::kInvalidArgument, "no such reduction");
  }
}

}  // namespace trireme::kernels::reference
