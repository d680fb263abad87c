#pragma once

// The loops of `combine` for one element type and operation, and which form of them this processor
// runs.

#include <array>
#include <bit>
#include <cstdint>

#include "trireme/kernels/reduce/element.h"
#include "trireme/kernels/simd.h"

namespace trireme::kernels {

/// Sources that one loop reads: more are combined from the results of several.
inline constexpr int kMaxSources = 4;

/// What one loop reads: elements, and for a scaled sum what each source is multiplied by.
template <typename Element, int Count>
struct Sources {
  std::array<const Element*, Count> elements;
  std::array<Wide<Element>, Count> scales;
};

/// THE tree over sources [Begin, Begin + Count), of one element.
template <ReduceOp Op, int Begin, int Count, typename Element, int Most>
TRIREME_INLINE_LOOP Wide<Element> tree_of(const Sources<Element, Most>& sources, std::int64_t i) {
  if constexpr (Count == 1) {
    const Wide<Element> x = widened(sources.elements[Begin][i]);
    if constexpr (Op == ReduceOp::kScaledSum) {
      return sources.scales[Begin] * x;
    } else {
      return x;
    }
  } else {
    constexpr int kLeft = static_cast<int>(std::bit_floor(static_cast<unsigned>(Count) - 1));
    return merged<Op, Element>(tree_of<Op, Begin, kLeft>(sources, i),
                               tree_of<Op, Begin + kLeft, Count - kLeft>(sources, i));
  }
}

/// target   may be one of the sources: each element is read before it is written.
template <typename Element, ReduceOp Op, int Count>
TRIREME_INLINE_LOOP void tree_loop(const Sources<Element, kMaxSources>& given,
                                   Wide<Element>* target, std::int64_t n) {
  Sources<Element, Count> sources;
  for (int s = 0; s < Count; ++s) {
    sources.elements[s] = given.elements[s];
    sources.scales[s] = given.scales[s];
  }
  TRIREME_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) target[i] = tree_of<Op, 0, Count>(sources, i);
}

template <typename Element, ReduceOp Op>
TRIREME_INLINE_LOOP void merge_loop(Wide<Element>* __restrict left,
                                    const Wide<Element>* __restrict right, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) left[i] = merged<Op, Element>(left[i], right[i]);
}

template <typename Element>
TRIREME_INLINE_LOOP void narrow_loop(const Wide<Element>* __restrict source,
                                     Element* __restrict target, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) target[i] = narrowed<Element>(source[i]);
}

/// The loops in the form of one instruction set.
template <typename Element>
struct MergeLoops {
  using Tree = void (*)(const Sources<Element, kMaxSources>&, Wide<Element>*, std::int64_t);
  std::array<Tree, kMaxSources> tree;  ///< By number of sources, from 1.
  void (*merge)(Wide<Element>*, const Wide<Element>*, std::int64_t);
  void (*narrow)(const Wide<Element>*, Element*, std::int64_t);
};

// The loops for each instruction set.

struct Portable {
  template <typename Element, ReduceOp Op, int Count>
  static void tree(const Sources<Element, kMaxSources>& sources, Wide<Element>* target,
                   std::int64_t n) {
    tree_loop<Element, Op, Count>(sources, target, n);
  }
  template <typename Element, ReduceOp Op>
  static void merge(Wide<Element>* left, const Wide<Element>* right, std::int64_t n) {
    merge_loop<Element, Op>(left, right, n);
  }
  template <typename Element>
  static void narrow(const Wide<Element>* source, Element* target, std::int64_t n) {
    narrow_loop(source, target, n);
  }
};

struct Avx2 {
  template <typename Element, ReduceOp Op, int Count>
  TRIREME_AVX2 static void tree(const Sources<Element, kMaxSources>& sources, Wide<Element>* target,
                                std::int64_t n) {
    tree_loop<Element, Op, Count>(sources, target, n);
  }
  template <typename Element, ReduceOp Op>
  TRIREME_AVX2 static void merge(Wide<Element>* left, const Wide<Element>* right, std::int64_t n) {
    merge_loop<Element, Op>(left, right, n);
  }
  template <typename Element>
  TRIREME_AVX2 static void narrow(const Wide<Element>* source, Element* target, std::int64_t n) {
    narrow_loop(source, target, n);
  }
};

struct Avx512 {
  template <typename Element, ReduceOp Op, int Count>
  TRIREME_AVX512 static void tree(const Sources<Element, kMaxSources>& sources,
                                  Wide<Element>* target, std::int64_t n) {
    tree_loop<Element, Op, Count>(sources, target, n);
  }
  template <typename Element, ReduceOp Op>
  TRIREME_AVX512 static void merge(Wide<Element>* left, const Wide<Element>* right,
                                   std::int64_t n) {
    merge_loop<Element, Op>(left, right, n);
  }
  template <typename Element>
  TRIREME_AVX512 static void narrow(const Wide<Element>* source, Element* target, std::int64_t n) {
    narrow_loop(source, target, n);
  }
};

template <typename Set, typename Element, ReduceOp Op>
MergeLoops<Element> loops_of() {
  return {{&Set::template tree<Element, Op, 1>, &Set::template tree<Element, Op, 2>,
           &Set::template tree<Element, Op, 3>, &Set::template tree<Element, Op, 4>},
          &Set::template merge<Element, Op>,
          &Set::template narrow<Element>};
}

/// Sums, which gradients are, have a form for each instruction set; others are compiled once.
template <typename Element, ReduceOp Op>
MergeLoops<Element> loops_here() {
  if constexpr (Op == ReduceOp::kSum || Op == ReduceOp::kScaledSum || Op == ReduceOp::kRoundedSum) {
    if (has_avx512()) return loops_of<Avx512, Element, Op>();
    if (has_avx2()) return loops_of<Avx2, Element, Op>();
  }
  return loops_of<Portable, Element, Op>();
}

}  // namespace trireme::kernels
