#include "trireme/engine/memory/torch_threads.h"

#include <ATen/Parallel.h>

#include <exception>
#include <mutex>

// at::parallel_for is a template that works on one thread where it is compiled without OpenMP, without a word; this file is
// compiled with it, and its runtime is torch's.
#if !defined(_OPENMP)
#error "torch_threads.cc is to be compiled with -fopenmp"
#endif

namespace trireme::memory {

void on_torch_threads(std::int64_t n, const kernels::Piece& piece) {
  if (n <= 1 || at::get_num_threads() == 1 || at::in_parallel_region()) {
    kernels::on_caller(n, piece);
    return;
  }
  std::exception_ptr error;
  std::mutex mutex;
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i) {
    try {
      piece(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace trireme::memory
