#pragma once

// How kernels get their fast form: a loop is written once, as a function that is forced inline, and
// compiled for any x86-64, for AVX2 with FMA and, where that pays, for AVX-512; `has_avx2` and
// `has_avx512` (isa.h) pick at run time. All give the same bits: elements do not depend on each
// other, a fused multiply-add is written as one (`fma`), and the compiler may make no others
// (-ffp-contract=off).

#include "trireme/kernels/host_device.h"
#include "trireme/kernels/isa.h"

#define TRIREME_INLINE_LOOP __attribute__((always_inline)) TRIREME_HOST_DEVICE inline

#if defined(__x86_64__)
#define TRIREME_AVX2 __attribute__((target("avx2,fma")))
#define TRIREME_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#else
#define TRIREME_AVX2
#define TRIREME_AVX512
#endif

/// Before a loop: its iterations do not depend on each other, though its pointers may be equal.
#if defined(__clang__)
#define TRIREME_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TRIREME_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace trireme::kernels {

/// a * b + c, rounded once. Builtins, since a library function would not be compiled twice.
TRIREME_INLINE_LOOP float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TRIREME_INLINE_LOOP double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

TRIREME_INLINE_LOOP float square_root(float x) { return __builtin_sqrtf(x); }
TRIREME_INLINE_LOOP double square_root(double x) { return __builtin_sqrt(x); }

}  // namespace trireme::kernels
