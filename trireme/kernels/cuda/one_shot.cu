#include <cuda_runtime.h>

#include <string>

#include "trireme/base/cuda/check.h"
#include "trireme/error.h"
#include "trireme/kernels/cuda/one_shot.h"
#include "trireme/kernels/reduce/element.h"
#include "trireme/kernels/reduce/strided_tree.h"

namespace trireme::kernels::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kVectorBytes = 16;

/// Everything that a launch is told.
struct Task {
  OneShotRanks ranks;
  std::uint64_t call;  ///< What all ranks must call alike, as a number.
  double scale;
  std::byte* data;
  std::int64_t count;
  std::int64_t slice_elements = 0;
  std::int64_t num_pieces = 1;
  bool is_average = false;
};

// ---- Memory that other GPUs see

/// What this thread wrote, and what it knows to be written, is seen by whoever acquires `value`.
__device__ void store_release(std::uint32_t* place, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;"
               :
               : "l"(__cvta_generic_to_global(place)), "r"(value)
               : "memory");
}

__device__ std::uint32_t load_acquire(const std::uint32_t* place) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(__cvta_generic_to_global(place))
               : "memory");
  return value;
}

__device__ std::uint32_t load_relaxed(const std::uint32_t* place) {
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(__cvta_generic_to_global(place))
               : "memory");
  return value;
}

/// Until a rank has come to `epoch`. Whether it has; else the ranks are to give up.
__device__ bool wait_for(const std::uint32_t* arrived, std::uint32_t epoch,
                         const std::uint32_t* is_aborted) {
  constexpr unsigned kSpins = 256;  // the flag lies in the host's memory, beyond the bus
  for (unsigned spins = 1;; ++spins) {
    // Epochs wrap around; no two ranks are further apart than one.
    if (static_cast<std::int32_t>(load_acquire(arrived) - epoch) >= 0) return true;
    if (spins % kSpins == 0 && is_aborted != nullptr && load_relaxed(is_aborted) != 0) return false;
  }
}

/// Whether a rank's call, which has come, is this one's; else the host is told.
__device__ bool is_same_call(const Task& task, int peer, unsigned half) {
  if (task.ranks.regions[peer]->calls[half][blockIdx.x] == task.call) return true;
  if (task.ranks.differs != nullptr) {
    *static_cast<volatile std::uint32_t*>(task.ranks.differs) = peer + 1;
    __threadfence_system();
  }
  return false;
}

/// This block of all ranks: what each wrote before is seen by all after. Whether all have come,
/// with the same call. The threads of the block come together.
__device__ bool meet(const Task& task, std::uint32_t epoch) {
  const OneShotRanks& ranks = task.ranks;
  __syncthreads();  // all threads have written
  bool has_failed = false;
  const int peer = static_cast<int>(threadIdx.x);
  if (peer < ranks.size && peer != ranks.rank) {
    __threadfence_system();
    store_release(&ranks.regions[peer]->meetings[blockIdx.x].arrived[ranks.rank], epoch);
    has_failed = !wait_for(&ranks.regions[ranks.rank]->meetings[blockIdx.x].arrived[peer], epoch,
                           ranks.is_aborted) ||
                 !is_same_call(task, peer, epoch & 1U);
  }
  return __syncthreads_or(has_failed ? 1 : 0) == 0;
}

// ---- Elements

template <typename Element>
struct alignas(kVectorBytes) Vector {
  static constexpr int kCount = kVectorBytes / sizeof(Element);
  Element elements[kCount];
};

template <typename Element>
__device__ bool is_aligned(const Element* data) {
  return reinterpret_cast<std::uintptr_t>(data) % kVectorBytes == 0;
}

/// stage = data. The stage has room for whole vectors.
template <typename Element>
__device__ void write_stage(const Element* data, Element* stage, std::int64_t count) {
  using Whole = Vector<Element>;
  const std::int64_t num_whole = is_aligned(data) ? count / Whole::kCount : 0;
  for (std::int64_t i = threadIdx.x; i < num_whole; i += kThreads) {
    reinterpret_cast<Whole*>(stage)[i] = reinterpret_cast<const Whole*>(data)[i];
  }
  for (std::int64_t i = num_whole * Whole::kCount + threadIdx.x; i < count; i += kThreads) {
    stage[i] = data[i];
  }
}

/// Element `i` of the vectors that the ranks gave, combined.
template <typename Element, ReduceOp Op>
__device__ Element combined(const Vector<Element> (&given)[kMostRanks], int i, const Task& task,
                            const Wide<Element> (&scales)[kMostRanks]) {
  std::array<Wide<Element>, kMostRanks> values{};
#pragma unroll
  for (int r = 0; r < kMostRanks; ++r) {
    if (r >= task.ranks.size) continue;
    values[r] = widened(given[r].elements[i]);
    if constexpr (Op == ReduceOp::kScaledSum) values[r] = scales[r] * values[r];
  }
  Wide<Element> result = strided_tree<Op, Element>(values, task.ranks.size);
  if constexpr (Op == ReduceOp::kSum && std::is_floating_point_v<Wide<Element>>) {
    if (task.is_average) result /= static_cast<Wide<Element>>(task.ranks.size);
  }
  return narrowed<Element>(result);
}

/// data = the tree over the stages of all ranks.
template <typename Element, ReduceOp Op>
__device__ void read_stages(const Task& task, unsigned half, Element* data, std::int64_t count) {
  using Whole = Vector<Element>;
  Wide<Element> scales[kMostRanks] = {};
  if constexpr (Op == ReduceOp::kScaledSum) {
#pragma unroll
    for (int r = 0; r < kMostRanks; ++r) {
      if (r >= task.ranks.size) continue;
      scales[r] = static_cast<Wide<Element>>(task.ranks.regions[r]->scales[half][blockIdx.x]);
    }
  }
  const bool has_whole = is_aligned(data);
  const std::int64_t num_vectors = (count + Whole::kCount - 1) / Whole::kCount;
  for (std::int64_t v = threadIdx.x; v < num_vectors; v += kThreads) {
    Whole given[kMostRanks];
#pragma unroll
    for (int r = 0; r < kMostRanks; ++r) {
      if (r >= task.ranks.size) continue;
      given[r] = reinterpret_cast<const Whole*>(task.ranks.regions[r]->stage[half][blockIdx.x])[v];
    }
    Whole result;
#pragma unroll
    for (int i = 0; i < Whole::kCount; ++i) {
      result.elements[i] = combined<Element, Op>(given, i, task, scales);
    }
    const std::int64_t begin = v * Whole::kCount;
    if (has_whole && begin + Whole::kCount <= count) {
      reinterpret_cast<Whole*>(data)[v] = result;
      continue;
    }
#pragma unroll
    for (int i = 0; i < Whole::kCount; ++i) {
      if (begin + i < count) data[begin + i] = result.elements[i];
    }
  }
}

template <typename Element, ReduceOp Op>
__global__ void __launch_bounds__(kThreads) all_reduce_kernel(const __grid_constant__ Task task) {
  OneShotRegion& own = *task.ranks.regions[task.ranks.rank];
  std::uint32_t epoch = own.meetings[blockIdx.x].epoch;
  for (std::int64_t piece = 0; piece < task.num_pieces; ++piece) {
    const unsigned half = ++epoch & 1U;
    const std::int64_t begin = (piece * gridDim.x + blockIdx.x) * task.slice_elements;
    const std::int64_t left = task.count - begin;
    const std::int64_t count =
        left < 0 ? 0 : (left < task.slice_elements ? left : task.slice_elements);
    Element* data = reinterpret_cast<Element*>(task.data) + (count > 0 ? begin : 0);
    if (threadIdx.x == 0) {
      own.scales[half][blockIdx.x] = task.scale;
      own.calls[half][blockIdx.x] = task.call;
    }
    write_stage(data, reinterpret_cast<Element*>(own.stage[half][blockIdx.x]), count);
    if (!meet(task, epoch)) return;
    read_stages<Element, Op>(task, half, data, count);
  }
  if (threadIdx.x == 0) own.meetings[blockIdx.x].epoch = epoch;
}

// ---- Launches

template <typename Element, ReduceOp Op>
void launch(Task task, CUstream_st* stream) {
  const OneShotShape shape =
      one_shot_shape(task.count * static_cast<std::int64_t>(sizeof(Element)));
  task.num_pieces = shape.num_pieces;
  task.slice_elements = shape.slice_bytes / static_cast<std::int64_t>(sizeof(Element));
  all_reduce_kernel<Element, Op><<<shape.num_blocks, kThreads, 0, stream>>>(task);
  trireme::cuda::check(cudaGetLastError(), "launch of one_shot_all_reduce");
}

/// A reduction that is_reducible.
template <typename Element>
void launch_any(Task task, ReduceOp op, CUstream_st* stream) {
  constexpr bool kIsReal = std::is_floating_point_v<Wide<Element>>;
  task.is_average = op == ReduceOp::kAverage;
  if (op == ReduceOp::kProduct) return launch<Element, ReduceOp::kProduct>(task, stream);
  if (op == ReduceOp::kMin) return launch<Element, ReduceOp::kMin>(task, stream);
  if (op == ReduceOp::kMax) return launch<Element, ReduceOp::kMax>(task, stream);
  if constexpr (kIsReal) {
    if (op == ReduceOp::kScaledSum) return launch<Element, ReduceOp::kScaledSum>(task, stream);
    if (op == ReduceOp::kRoundedSum) return launch<Element, ReduceOp::kRoundedSum>(task, stream);
  } else {
    if (op == ReduceOp::kAnd) return launch<Element, ReduceOp::kAnd>(task, stream);
    if (op == ReduceOp::kOr) return launch<Element, ReduceOp::kOr>(task, stream);
    if (op == ReduceOp::kXor) return launch<Element, ReduceOp::kXor>(task, stream);
  }
  launch<Element, ReduceOp::kSum>(task, stream);
}

void launch_bool(const Task& task, ReduceOp op, CUstream_st* stream) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMax:
    case ReduceOp::kOr:
      return launch<Bool, ReduceOp::kOr>(task, stream);
    case ReduceOp::kXor:
      return launch<Bool, ReduceOp::kXor>(task, stream);
    default:
      return launch<Bool, ReduceOp::kAnd>(task, stream);
  }
}

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "one_shot_all_reduce: " + problem);
}

void check_arguments(const OneShotRanks& ranks, const ElementReduction& reduction,
                     std::int64_t count) {
  if (ranks.size < 1 || ranks.size > kMostRanks || ranks.rank < 0 || ranks.rank >= ranks.size) {
    refuse("rank " + std::to_string(ranks.rank) + " of " + std::to_string(ranks.size) +
           "; at most " + std::to_string(kMostRanks));
  }
  for (int r = 0; r < ranks.size; ++r) {
    if (ranks.regions[r] == nullptr) refuse("no region of rank " + std::to_string(r));
  }
  if (count < 0) refuse(std::to_string(count) + " elements");
  if (!is_reducible(reduction.dtype, reduction.op)) {
    refuse("no " + std::string(to_text(reduction.op)) + " of " +
           std::string(to_text(reduction.dtype)));
  }
}

}  // namespace

void one_shot_all_reduce(const OneShotRanks& ranks, const ElementReduction& reduction, double scale,
                         std::byte* data, std::int64_t count, CUstream_st* stream) {
  check_arguments(ranks, reduction, count);
  const ReduceOp op = reduction.op;
  const auto call = static_cast<std::uint64_t>(count) << 16 |
                    static_cast<std::uint64_t>(reduction.dtype) << 8 |
                    static_cast<std::uint64_t>(op);
  const Task task{.ranks = ranks, .call = call, .scale = scale, .data = data, .count = count};
  switch (reduction.dtype) {
    case Dtype::kF64:
      return launch_any<double>(task, op, stream);
    case Dtype::kF32:
      return launch_any<float>(task, op, stream);
    case Dtype::kF16:
      return launch_any<F16>(task, op, stream);
    case Dtype::kBf16:
      return launch_any<Bf16>(task, op, stream);
    case Dtype::kI64:
      return launch_any<std::int64_t>(task, op, stream);
    case Dtype::kI32:
      return launch_any<std::int32_t>(task, op, stream);
    case Dtype::kI16:
      return launch_any<std::int16_t>(task, op, stream);
    case Dtype::kI8:
      return launch_any<std::int8_t>(task, op, stream);
    case Dtype::kU8:
      return launch_any<std::uint8_t>(task, op, stream);
    default:
      return launch_bool(task, op, stream);
  }
}

}  // namespace trireme::kernels::cuda
