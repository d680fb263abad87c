#pragma once

#include <cuda_runtime_api.h>

namespace trireme::cuda {

/// Throws where `code` says that `call` failed: kResourceExhausted out of memory, kUnavailable
/// without GPU or driver, else kIo.
void check(cudaError_t code, const char* call);

}  // namespace trireme::cuda
