// Compiles the file TRIREME_LOOPS once for every set of instructions, each time in a namespace of
// its own: `portable`, `avx2`, `avx512`. For loops that are written with Lanes (lanes.h), which a
// compiler lowers where they are defined; loops over plain arrays need no more than simd.h.
//
//     #define TRIREME_LOOPS "trireme/kernels/normalization/row_loops.h"
//     #include "trireme/kernels/each_isa.h"
//
// `of_isa` (isa.h) picks one of them at run time.
//
// What TRIREME_LOOPS includes itself has to be included before, so that it is compiled for any
// processor.

#if defined(TRIREME_LOOPS)

#define TRIREME_ISA_NAMESPACE portable
#define TRIREME_PART_BYTES 16
#include TRIREME_LOOPS
#undef TRIREME_ISA_NAMESPACE
#undef TRIREME_PART_BYTES

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define TRIREME_ISA_NAMESPACE avx2
#define TRIREME_PART_BYTES 32
#include TRIREME_LOOPS
#undef TRIREME_ISA_NAMESPACE
#undef TRIREME_PART_BYTES
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#endif
#define TRIREME_ISA_NAMESPACE avx512
#define TRIREME_PART_BYTES 64
#include TRIREME_LOOPS
#undef TRIREME_ISA_NAMESPACE
#undef TRIREME_PART_BYTES
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace trireme::kernels {
namespace avx2 = portable;
namespace avx512 = portable;
}  // namespace trireme::kernels

#endif

#undef TRIREME_LOOPS
#endif
