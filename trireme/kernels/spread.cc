#include "trireme/kernels/spread.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "trireme/base/error.h"

namespace trireme::kernels {
namespace {

/// What the threads of a call share.
class Pieces {
 public:
  Pieces(std::int64_t n, const Piece& piece) : n_(n), piece_(piece) {}

  void work() noexcept {
    for (std::int64_t i = next_++; i < n_; i = next_++) {
      try {
        piece_(i);
      } catch (...) {
        fail(std::current_exception());
      }
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    next_ = n_;
  }

  const std::int64_t n_;
  const Piece& piece_;
  std::atomic<std::int64_t> next_ = 0;
  std::mutex mutex_;  // for what follows
  std::exception_ptr failure_;
};

void spread(int num_threads, std::int64_t n, const Piece& piece) {
  Pieces pieces(n, piece);
  {
    std::vector<std::jthread> threads;
    const std::int64_t num_others = std::min<std::int64_t>(num_threads, n) - 1;
    for (std::int64_t i = 0; i < num_others; ++i) threads.emplace_back([&] { pieces.work(); });
    pieces.work();
  }
  pieces.rethrow();
}

}  // namespace

void on_caller(std::int64_t n, const Piece& piece) {
  for (std::int64_t i = 0; i < n; ++i) piece(i);
}

Spread on_threads(int num_threads) {
  if (num_threads < 1) {
    throw Error(ErrorKind::kInvalidArgument,
                "expected 1 thread or more, got " + std::to_string(num_threads));
  }
  if (num_threads == 1) return on_caller;
  return [num_threads](std::int64_t n, const Piece& piece) { spread(num_threads, n, piece); };
}

}  // namespace trireme::kernels
