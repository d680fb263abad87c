#pragma once

// What several indices of a pass change together (passes.h): on a GPU by its atomic instructions,
// on the host by std::atomic_ref. Whole numbers only, and relaxed: a later pass reads what became
// of them. Sums, minima and maxima know no order, so results repeat.

#include <cstdint>

#include "trireme/kernels/host_device.h"

#if !defined(__CUDA_ARCH__)
#include <atomic>
#endif

namespace trireme::kernels::cuda::internal {

TRIREME_HOST_DEVICE inline std::int32_t load_relaxed(std::int32_t* place) {
#if defined(__CUDA_ARCH__)
  return *static_cast<volatile std::int32_t*>(place);
#else
  return std::atomic_ref(*place).load(std::memory_order_relaxed);
#endif
}

TRIREME_HOST_DEVICE inline void store_relaxed(std::int32_t* place, std::int32_t value) {
#if defined(__CUDA_ARCH__)
  *static_cast<volatile std::int32_t*>(place) = value;
#else
  std::atomic_ref(*place).store(value, std::memory_order_relaxed);
#endif
}

/// Makes `expected` a `desired`. What was there: if it is not `expected`, nothing has changed.
TRIREME_HOST_DEVICE inline std::int32_t compare_and_swap(std::int32_t* place, std::int32_t expected,
                                                         std::int32_t desired) {
#if defined(__CUDA_ARCH__)
  return atomicCAS(place, expected, desired);
#else
  std::atomic_ref(*place).compare_exchange_strong(expected, desired, std::memory_order_relaxed);
  return expected;
#endif
}

TRIREME_HOST_DEVICE inline void add_to(std::int32_t* place, std::int32_t value) {
#if defined(__CUDA_ARCH__)
  atomicAdd(place, value);
#else
  std::atomic_ref(*place).fetch_add(value, std::memory_order_relaxed);
#endif
}

TRIREME_HOST_DEVICE inline void add_to(std::int64_t* place, std::int64_t value) {
#if defined(__CUDA_ARCH__)
  atomicAdd(reinterpret_cast<unsigned long long*>(place), static_cast<unsigned long long>(value));
#else
  std::atomic_ref(*place).fetch_add(value, std::memory_order_relaxed);
#endif
}

// Most calls of these two change nothing, and a look costs less than an atomic instruction, of
// which a place takes one after the other.

TRIREME_HOST_DEVICE inline void lower_to(std::int64_t* place, std::int64_t value) {
#if defined(__CUDA_ARCH__)
  if (*static_cast<volatile std::int64_t*>(place) <= value) return;
  atomicMin(reinterpret_cast<long long*>(place), static_cast<long long>(value));
#else
  const std::atomic_ref least(*place);
  std::int64_t found = least.load(std::memory_order_relaxed);
  while (value < found && !least.compare_exchange_weak(found, value, std::memory_order_relaxed)) {
  }
#endif
}

TRIREME_HOST_DEVICE inline void raise_to(std::int64_t* place, std::int64_t value) {
#if defined(__CUDA_ARCH__)
  if (*static_cast<volatile std::int64_t*>(place) >= value) return;
  atomicMax(reinterpret_cast<long long*>(place), static_cast<long long>(value));
#else
  const std::atomic_ref most(*place);
  std::int64_t found = most.load(std::memory_order_relaxed);
  while (found < value && !most.compare_exchange_weak(found, value, std::memory_order_relaxed)) {
  }
#endif
}

}  // namespace trireme::kernels::cuda::internal
