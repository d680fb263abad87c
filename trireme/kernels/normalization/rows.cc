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

const RowLoops& row_loops() {
  if (has_avx512()) return avx512::kRowLoops;
  if (has_avx2()) return avx2::kRowLoops;
  return portable::kRowLoops;
}

}  // namespace trireme::kernels::internal
