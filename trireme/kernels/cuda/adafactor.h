#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/kernels/half.h"
#include "trireme/kernels/optimizer/adafactor.h"

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::kernels::cuda {

// Adafactor (optimizer/adafactor.h) for GPUs: the same formula, order of sums and bits.
//
// Arrays       memory of the stream's device, as there.
// workspace    adafactor_workspace_bytes of the same shape and device, aligned to 16, not set; used
//              until the work is done.
// Errors       as there; kInvalidArgument for a workspace that is too small; kUnavailable without
//              CUDA, kIo where a launch fails. Nothing is launched for no elements.
// Blocking     no: work is put on the stream.
// State        Compiled, their passes tested on the host; they have not run on a GPU.

/// Cost   28 bytes read or written for each element, 36 with m (32 as bf16); 13 launches. 16 threads
///        add the squares of a row, one those of a column, and one adds what rows have: made for
///        large matrices, not for many small ones.
void adafactor(const AdafactorOptions& options, std::int64_t step, const AdafactorShape& shape,
               const float* gradient, float* row, float* column, float* m, float* parameter,
               std::span<std::byte> workspace, CUstream_st* stream);
void adafactor(const AdafactorOptions& options, std::int64_t step, const AdafactorShape& shape,
               const float* gradient, float* row, float* column, Bf16* m, float* parameter,
               std::span<std::byte> workspace, CUstream_st* stream);

/// Cost   40 bytes, 48 with m (44 as bf16); 8 launches.
void adafactor(const AdafactorOptions& options, std::int64_t step, const float* gradient, float* v,
               float* m, float* parameter, std::int64_t n, std::span<std::byte> workspace,
               CUstream_st* stream);
void adafactor(const AdafactorOptions& options, std::int64_t step, const float* gradient, float* v,
               Bf16* m, float* parameter, std::int64_t n, std::span<std::byte> workspace,
               CUstream_st* stream);

/// 132 bytes for each row (128 more for each norm block beyond the rows), 4 for each column, 8 for
/// each matrix.
std::int64_t adafactor_workspace_bytes(const AdafactorShape& shape);

/// Of a vector: a 128th of a byte for each element.
std::int64_t adafactor_workspace_bytes(std::int64_t n);

}  // namespace trireme::kernels::cuda
