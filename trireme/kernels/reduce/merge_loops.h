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

/// THE tree over sources[begin ... begin + count), of one element.
template <ReduceOp op, int begin, int count, typename Sources>
TRIREME_INLINE_LOOP auto tree_of(const Sources& sources, std::int64_t i) {
  if constexpr (count == 1) {
    return widened(sources[begin][i]);
  } else {
    constexpr int kLeft = static_cast<int>(std::bit_floor(static_cast<unsigned>(count) - 1));
    return merged<op>(tree_of<op, begin, kLeft>(sources, i),
                      tree_of<op, begin + kLeft, count - kLeft>(sources, i));
  }
}

/// target   may be one of the sources: each element is read before it is written.
template <typename Element, ReduceOp op, int count>
TRIREME_INLINE_LOOP void tree_loop(const Element* const* given, Wide<Element>* target,
                                   std::int64_t n) {
  std::array<const Element*, count> sources;
  for (int s = 0; s < count; ++s) sources[s] = given[s];
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) target[i] = tree_of<op, 0, count>(sources, i);
}

template <typename T, ReduceOp op>
TRIREME_INLINE_LOOP void merge_loop(T* __restrict left, const T* __restrict right, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) left[i] = merged<op>(left[i], right[i]);
}

template <typename Element>
TRIREME_INLINE_LOOP void narrow_loop(const Wide<Element>* __restrict source,
                                     Element* __restrict target, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) target[i] = narrowed<Element>(source[i]);
}

/// The loops in the form of one instruction set.
template <typename Element>
struct MergeLoops {
  using Tree = void (*)(const Element* const*, Wide<Element>*, std::int64_t);
  std::array<Tree, kMaxSources> tree;  ///< By number of sources, from 1.
  void (*merge)(Wide<Element>*, const Wide<Element>*, std::int64_t);
  void (*narrow)(const Wide<Element>*, Element*, std::int64_t);
};

// The same three functions for each instruction set: a lambda would not take the attribute.
#define TRIREME_MERGE_LOOPS(set, attribute)                                                      \
  template <typename Element, ReduceOp op, int count>                                            \
  attribute void tree_##set(const Element* const* sources, Wide<Element>* target,                \
                            std::int64_t n) {                                                    \
    tree_loop<Element, op, count>(sources, target, n);                                           \
  }                                                                                              \
  template <typename T, ReduceOp op>                                                             \
  attribute void merge_##set(T* left, const T* right, std::int64_t n) {                          \
    merge_loop<T, op>(left, right, n);                                                           \
  }                                                                                              \
  template <typename Element>                                                                    \
  attribute void narrow_##set(const Wide<Element>* source, Element* target, std::int64_t n) {    \
    narrow_loop(source, target, n);                                                              \
  }                                                                                              \
  template <typename Element, ReduceOp op>                                                       \
  constexpr MergeLoops<Element> loops_##set() {                                                  \
    return {{tree_##set<Element, op, 1>, tree_##set<Element, op, 2>, tree_##set<Element, op, 3>, \
             tree_##set<Element, op, 4>},                                                        \
            merge_##set<Wide<Element>, op>,                                                      \
            narrow_##set<Element>};                                                              \
  }

TRIREME_MERGE_LOOPS(portable, )
TRIREME_MERGE_LOOPS(avx2, TRIREME_AVX2)
TRIREME_MERGE_LOOPS(avx512, TRIREME_AVX512)
#undef TRIREME_MERGE_LOOPS

/// Sums, which gradients are, have a form for each instruction set; others are compiled once.
template <typename Element, ReduceOp op>
MergeLoops<Element> loops_here() {
  if constexpr (op == ReduceOp::kSum) {
    if (has_avx512()) return loops_avx512<Element, op>();
    if (has_avx2()) return loops_avx2<Element, op>();
  }
  return loops_portable<Element, op>();
}

}  // namespace trireme::kernels
