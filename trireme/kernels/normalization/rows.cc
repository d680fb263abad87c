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
  return of_isa(portable::kRowLoops, avx2::kRowLoops, avx512::kRowLoops);
}

}  // namespace trireme::kernels::internal
