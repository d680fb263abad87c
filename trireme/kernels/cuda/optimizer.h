#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/kernels/half.h"
#include "trireme/kernels/optimizer/adamw.h"
#include "trireme/kernels/optimizer/lamb.h"
#include "trireme/kernels/optimizer/lars.h"
#include "trireme/kernels/optimizer/novograd.h"
#include "trireme/kernels/optimizer/sgd.h"

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::kernels::cuda {

// The optimizers of kernels/optimizer/ for GPUs: the same formulas, the same bits.
//
// Arrays       memory of the stream's device, [n] as there; aligned to the element.
// workspace    layerwise_workspace_bytes(n) of the same device, aligned to 16, not set; used until
//              the work is done.
// Errors       as there; kInvalidArgument for a workspace that is too small; kUnavailable without
//              CUDA, kIo where a launch fails. Nothing is launched for n = 0.
// Blocking     no: work is put on the stream.
// State        Compiled, their passes tested on the host; they have not run on a GPU.

void sgd(const SgdOptions& options, bool first_step, const float* gradient, float* buffer,
         float* parameter, std::int64_t n, CUstream_st* stream);
void sgd(const SgdOptions& options, bool first_step, const double* gradient, double* buffer,
         double* parameter, std::int64_t n, CUstream_st* stream);
void sgd(const SgdOptions& options, bool first_step, const float* gradient, Bf16* buffer,
         float* parameter, std::int64_t n, CUstream_st* stream);

/// Square roots are correctly rounded.
void adamw(const AdamwOptions& options, std::int64_t step, const float* gradient, float* exp_avg,
           float* exp_avg_sq, float* parameter, std::int64_t n, CUstream_st* stream);
void adamw(const AdamwOptions& options, std::int64_t step, const double* gradient, double* exp_avg,
           double* exp_avg_sq, double* parameter, std::int64_t n, CUstream_st* stream);
void adamw(const AdamwOptions& options, std::int64_t step, const float* gradient, Bf16* exp_avg,
           Bf16* exp_avg_sq, float* parameter, std::int64_t n, CUstream_st* stream);

/// All in bf16, rounded by the same random bits. Cost: 14 bytes read or written for each element.
void adamw(const AdamwOptions& options, std::int64_t step, std::uint64_t seed, const Bf16* gradient,
           Bf16* exp_avg, Bf16* exp_avg_sq, Bf16* parameter, std::int64_t n, CUstream_st* stream);

// Norms keep the order of norm/norm.h, 16 sums for each 16 Ki elements. That is n / 1024 threads:
// tensors of less than some 10 million elements are too small to use a large GPU's bandwidth. Costs
// are those of moments in f32.

/// Cost   52 bytes read or written for each element, 6 launches.
void lamb(const LambOptions& options, std::int64_t step, const float* gradient, float* m, float* v,
          float* parameter, std::int64_t n, std::span<std::byte> workspace, CUstream_st* stream);
void lamb(const LambOptions& options, std::int64_t step, const float* gradient, Bf16* m, Bf16* v,
          float* parameter, std::int64_t n, std::span<std::byte> workspace, CUstream_st* stream);

/// Cost   28 bytes for each element, 5 launches; 20 and 2 where nothing adapts.
void lars(const LarsOptions& options, const float* gradient, float* buffer, float* parameter,
          std::int64_t n, std::span<std::byte> workspace, CUstream_st* stream);
void lars(const LarsOptions& options, const float* gradient, Bf16* buffer, float* parameter,
          std::int64_t n, std::span<std::byte> workspace, CUstream_st* stream);

/// v      [1] of the tensor, updated.
/// Cost   24 bytes for each element, 4 launches.
void novograd(const NovogradOptions& options, std::int64_t step, const float* gradient, double* v,
              float* m, float* parameter, std::int64_t n, std::span<std::byte> workspace,
              CUstream_st* stream);
void novograd(const NovogradOptions& options, std::int64_t step, const float* gradient, double* v,
              Bf16* m, float* parameter, std::int64_t n, std::span<std::byte> workspace,
              CUstream_st* stream);

/// A 64th of a byte for each element.
std::int64_t layerwise_workspace_bytes(std::int64_t n);

}  // namespace trireme::kernels::cuda
