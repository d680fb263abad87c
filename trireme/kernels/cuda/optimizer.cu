#include "trireme/kernels/cuda/adafactor.h"
#include "trireme/kernels/cuda/adafactor_passes.h"
#include "trireme/kernels/cuda/launch.cuh"
#include "trireme/kernels/cuda/layerwise_passes.h"
#include "trireme/kernels/cuda/optimizer.h"
#include "trireme/kernels/cuda/optimizer_passes.h"

namespace trireme::kernels::cuda {

using internal::OnStream;

void sgd(const SgdOptions& options, bool first_step, const float* gradient, float* buffer,
         float* parameter, std::int64_t n, CUstream_st* stream) {
  internal::sgd_passes(options, first_step, gradient, buffer, parameter, n,
                       OnStream{"sgd", stream});
}

void sgd(const SgdOptions& options, bool first_step, const double* gradient, double* buffer,
         double* parameter, std::int64_t n, CUstream_st* stream) {
  internal::sgd_passes(options, first_step, gradient, buffer, parameter, n,
                       OnStream{"sgd", stream});
}

void sgd(const SgdOptions& options, bool first_step, const float* gradient, Bf16* buffer,
         float* parameter, std::int64_t n, CUstream_st* stream) {
  internal::sgd_passes(options, first_step, gradient, buffer, parameter, n,
                       OnStream{"sgd", stream});
}

void adamw(const AdamwOptions& options, std::int64_t step, const float* gradient, float* exp_avg,
           float* exp_avg_sq, float* parameter, std::int64_t n, CUstream_st* stream) {
  internal::adamw_passes(options, step, gradient, exp_avg, exp_avg_sq, parameter, n,
                         OnStream{"adamw", stream});
}

void adamw(const AdamwOptions& options, std::int64_t step, const double* gradient, double* exp_avg,
           double* exp_avg_sq, double* parameter, std::int64_t n, CUstream_st* stream) {
  internal::adamw_passes(options, step, gradient, exp_avg, exp_avg_sq, parameter, n,
                         OnStream{"adamw", stream});
}

void adamw(const AdamwOptions& options, std::int64_t step, const float* gradient, Bf16* exp_avg,
           Bf16* exp_avg_sq, float* parameter, std::int64_t n, CUstream_st* stream) {
  internal::adamw_passes(options, step, gradient, exp_avg, exp_avg_sq, parameter, n,
                         OnStream{"adamw", stream});
}

void adamw(const AdamwOptions& options, std::int64_t step, std::uint64_t seed, const Bf16* gradient,
           Bf16* exp_avg, Bf16* exp_avg_sq, Bf16* parameter, std::int64_t n, CUstream_st* stream) {
  internal::adamw_passes(options, step, seed, gradient, exp_avg, exp_avg_sq, parameter, n,
                         OnStream{"adamw", stream});
}

void lamb(const LambOptions& options, std::int64_t step, const float* gradient, float* m, float* v,
          float* parameter, std::int64_t n, std::span<std::byte> workspace, CUstream_st* stream) {
  internal::lamb_passes(options, step, gradient, m, v, parameter, n, workspace,
                        OnStream{"lamb", stream});
}

void lamb(const LambOptions& options, std::int64_t step, const float* gradient, Bf16* m, Bf16* v,
          float* parameter, std::int64_t n, std::span<std::byte> workspace, CUstream_st* stream) {
  internal::lamb_passes(options, step, gradient, m, v, parameter, n, workspace,
                        OnStream{"lamb", stream});
}

void lars(const LarsOptions& options, const float* gradient, float* buffer, float* parameter,
          std::int64_t n, std::span<std::byte> workspace, CUstream_st* stream) {
  internal::lars_passes(options, gradient, buffer, parameter, n, workspace,
                        OnStream{"lars", stream});
}

void lars(const LarsOptions& options, const float* gradient, Bf16* buffer, float* parameter,
          std::int64_t n, std::span<std::byte> workspace, CUstream_st* stream) {
  internal::lars_passes(options, gradient, buffer, parameter, n, workspace,
                        OnStream{"lars", stream});
}

void novograd(const NovogradOptions& options, std::int64_t step, const float* gradient, double* v,
              float* m, float* parameter, std::int64_t n, std::span<std::byte> workspace,
              CUstream_st* stream) {
  internal::novograd_passes(options, step, gradient, v, m, parameter, n, workspace,
                            OnStream{"novograd", stream});
}

void novograd(const NovogradOptions& options, std::int64_t step, const float* gradient, double* v,
              Bf16* m, float* parameter, std::int64_t n, std::span<std::byte> workspace,
              CUstream_st* stream) {
  internal::novograd_passes(options, step, gradient, v, m, parameter, n, workspace,
                            OnStream{"novograd", stream});
}

std::int64_t layerwise_workspace_bytes(std::int64_t n) {
  return internal::LayerwiseWorkspace(internal::Cutter(), n).bytes;
}

void adafactor(const AdafactorOptions& options, std::int64_t step, const AdafactorShape& shape,
               const float* gradient, float* row, float* column, float* m, float* parameter,
               std::span<std::byte> workspace, CUstream_st* stream) {
  internal::adafactor_passes(options, step, shape, gradient, row, column, m, parameter, workspace,
                             OnStream{"adafactor", stream});
}

void adafactor(const AdafactorOptions& options, std::int64_t step, const AdafactorShape& shape,
               const float* gradient, float* row, float* column, Bf16* m, float* parameter,
               std::span<std::byte> workspace, CUstream_st* stream) {
  internal::adafactor_passes(options, step, shape, gradient, row, column, m, parameter, workspace,
                             OnStream{"adafactor", stream});
}

void adafactor(const AdafactorOptions& options, std::int64_t step, const float* gradient, float* v,
               float* m, float* parameter, std::int64_t n, std::span<std::byte> workspace,
               CUstream_st* stream) {
  internal::adafactor_passes(options, step, gradient, v, m, parameter, n, workspace,
                             OnStream{"adafactor", stream});
}

void adafactor(const AdafactorOptions& options, std::int64_t step, const float* gradient, float* v,
               Bf16* m, float* parameter, std::int64_t n, std::span<std::byte> workspace,
               CUstream_st* stream) {
  internal::adafactor_passes(options, step, gradient, v, m, parameter, n, workspace,
                             OnStream{"adafactor", stream});
}

std::int64_t adafactor_workspace_bytes(const AdafactorShape& shape) {
  return internal::AdafactorSpace(internal::Cutter(), shape).bytes;
}

std::int64_t adafactor_workspace_bytes(std::int64_t n) {
  return internal::AdafactorSpace(internal::Cutter(), n).bytes;
}

}  // namespace trireme::kernels::cuda
