// In place of the .cu files where there was no CUDA toolkit.

#include "trireme/base/error.h"
#include "trireme/kernels/cuda/one_shot.h"
#include "trireme/kernels/cuda/optimizer.h"

namespace trireme::kernels::cuda {
namespace {

using Bytes = std::span<std::byte>;

[[noreturn]] void refuse() {
  throw Error(
      ErrorKind::kUnavailable,
      "this program was built without CUDA; configure the build anew where nvcc is in PATH, "
      "with -DTRIREME_CUDA=ON");
}

}  // namespace

void one_shot_all_reduce(const OneShotRanks& /*ranks*/, const Reduction& /*reduction*/,
                         double /*scale*/, std::byte* /*data*/, std::int64_t /*count*/,
                         CUstream_st* /*stream*/) {
  refuse();
}

// ---- optimizer.h

void sgd(const SgdOptions&, bool, const float*, float*, float*, std::int64_t, CUstream_st*) {
  refuse();
}
void sgd(const SgdOptions&, bool, const double*, double*, double*, std::int64_t, CUstream_st*) {
  refuse();
}
void adamw(const AdamwOptions&, std::int64_t, const float*, float*, float*, float*, std::int64_t,
           CUstream_st*) {
  refuse();
}
void adamw(const AdamwOptions&, std::int64_t, const double*, double*, double*, double*,
           std::int64_t, CUstream_st*) {
  refuse();
}
void lamb(const LambOptions&, std::int64_t, const float*, float*, float*, float*, std::int64_t,
          Bytes, CUstream_st*) {
  refuse();
}
void lars(const LarsOptions&, const float*, float*, float*, std::int64_t, Bytes, CUstream_st*) {
  refuse();
}
void novograd(const NovogradOptions&, std::int64_t, const float*, double*, float*, float*,
              std::int64_t, Bytes, CUstream_st*) {
  refuse();
}
std::int64_t layerwise_workspace_bytes(std::int64_t) { refuse(); }

}  // namespace trireme::kernels::cuda
