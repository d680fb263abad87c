#include "trireme/kernels/isa.h"

#include <algorithm>
#include <atomic>

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "trireme/base/environment.h"

namespace trireme::kernels {
namespace {

#if defined(__x86_64__)
/// The kernel saves tiles only for processes that ask.
bool may_use_tiles() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr int kRequestPermission = 0x1023;
  constexpr int kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

Isa isa_of_processor() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::kPortable;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return Isa::kAvx2;
  }
  unsigned a = 7, b = 0, c = 0, d = 0;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  constexpr unsigned kBf16AndTiles = (1U << 22) | (1U << 24);
  const bool has_tiles = (d & kBf16AndTiles) == kBf16AndTiles;
  return has_tiles && may_use_tiles() ? Isa::kAmx : Isa::kAvx512;
}
#else
Isa isa_of_processor() { return Isa::kPortable; }
#endif

std::atomic<Isa>& current() {
  static std::atomic<Isa> isa(std::min(isa_of_processor(), read_isa_limit().value_or(Isa::kAmx)));
  return isa;
}

}  // namespace

Isa isa() { return current().load(std::memory_order_relaxed); }

IsaLimit::IsaLimit(Isa limit) : before_(isa()) { current() = std::min(before_, limit); }
IsaLimit::~IsaLimit() { current() = before_; }

}  // namespace trireme::kernels
