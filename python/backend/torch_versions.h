#pragma once

#include <torch/version.h>

#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

// What torch 2.11 to 2.13 do not have of c10d, or call otherwise.

/// `override` of functions that are virtual since 2.14.
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 14
#define TRIREME_OVERRIDE_SINCE_TORCH_2_14 override
#else
#define TRIREME_OVERRIDE_SINCE_TORCH_2_14
#endif

namespace trireme::backend {

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 14
inline constexpr c10d::OpType kAllGatherCoalesced = c10d::OpType::ALLGATHER_INTO_TENSOR_COALESCED;
#else
inline constexpr c10d::OpType kAllGatherCoalesced = c10d::OpType::ALLGATHER_COALESCED;
#endif

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 12
inline constexpr c10d::OpType kReduceScatterCoalesced =
    c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED;
#else
inline constexpr c10d::OpType kReduceScatterCoalesced = c10d::OpType::REDUCE_SCATTER;
#endif

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
using ScaledSum = c10d::PreMulSumSupplement;
#else
using ScaledSum = c10d::NCCLPreMulSumSupplement;
#endif

}  // namespace trireme::backend
