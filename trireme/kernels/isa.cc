#include "trireme/kernels/isa.h"

#include <algorithm>
#include <atomic>

#include "trireme/base/environment.h"

namespace trireme::kernels {
namespace {

#if defined(__x86_64__)
Isa isa_of_processor() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::kPortable;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return Isa::kAvx2;
  }
  return Isa::kAvx512;
}
#else
Isa isa_of_processor() { return Isa::kPortable; }
#endif

std::atomic<Isa>& current() {
  static std::atomic<Isa> isa(
      std::min(isa_of_processor(), read_isa_limit().value_or(Isa::kAvx512)));
  return isa;
}

}  // namespace

Isa isa() { return current().load(std::memory_order_relaxed); }

IsaLimit::IsaLimit(Isa limit) : before_(isa()) { current() = std::min(before_, limit); }
IsaLimit::~IsaLimit() { current() = before_; }

}  // namespace trireme::kernels
