// In place of the .cu files where there was no CUDA toolkit.

#include "trireme/error.h"
#include "trireme/kernels/cuda/one_shot.h"

namespace trireme::kernels::cuda {
namespace {

[[noreturn]] void refuse() {
  throw Error(
      ErrorKind::kUnavailable,
      "this program was built without CUDA; configure the build anew where nvcc is in PATH, "
      "with -DTRIREME_CUDA=ON");
}

}  // namespace

void one_shot_all_reduce(const OneShotRanks& /*ranks*/, const ElementReduction& /*reduction*/,
                         double /*scale*/, std::byte* /*data*/, std::int64_t /*count*/,
                         CUstream_st* /*stream*/) {
  refuse();
}

}  // namespace trireme::kernels::cuda
