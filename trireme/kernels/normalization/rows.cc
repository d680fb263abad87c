#include "trireme/kernels/normalization/rows.h"

#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "trireme/kernels/isa.h"

#define TRIREME_LOOPS "trireme/kernels/normalization/row_loops.h"
#include "trireme/kernels/each_isa.h"

namespace trireme::kernels::internal {

template <>
const RowLoops<float>& row_loops<float>() {
  return of_isa(portable::kFloatRowLoops, avx2::kFloatRowLoops, avx512::kFloatRowLoops);
}

template <>
const RowLoops<Bf16>& row_loops<Bf16>() {
  return of_isa(portable::kBf16RowLoops, avx2::kBf16RowLoops, avx512::kBf16RowLoops);
}

}  // namespace trireme::kernels::internal
