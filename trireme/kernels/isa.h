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

/// The one of three forms that kernels run with.
template <typename Loops>
const Loops& of_isa(const Loops& portable, const Loops& avx2, const Loops& avx512) {
  return has_avx512() ? avx512 : has_avx2() ? avx2 : portable;
}

}  // namespace trireme::kernels
