#pragma once

#include "trireme/base/isa.h"

namespace trireme::kernels {

/// What kernels run with: the best that this processor and system have, at most TRIREME_ISA. Any
/// thread.
///
/// Errors   kInvalidArgument where the variable has no meaning.
Isa isa();

/// While it lives kernels of this process run with no more than that: for tests that compare. One
/// at a time.
class IsaLimit {
 public:
  explicit IsaLimit(Isa limit);
  ~IsaLimit();
  IsaLimit(const IsaLimit&) = delete;
  IsaLimit& operator=(const IsaLimit&) = delete;

 private:
  Isa before_;
};

/// Whether TRIREME_AVX2 and TRIREME_AVX512 code may run.
inline bool has_avx2() { return isa() >= Isa::kAvx2; }
inline bool has_avx512() { return isa() >= Isa::kAvx512; }

}  // namespace trireme::kernels
