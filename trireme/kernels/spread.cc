#include "trireme/kernels/spread.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "trireme/error.h"

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

  /// No piece begins any more.
  void stop() noexcept { next_ = n_; }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    stop();
  }

  const std::int64_t n_;
  const Piece& piece_;
  std::atomic<std::int64_t> next_ = 0;
  std::mutex mutex_;  // for what follows
  std::exception_ptr failure_;
};

void start(std::int64_t count, Pieces& pieces, std::vector<std::jthread>& threads) {
  try {
    for (std::int64_t i = 0; i < count; ++i) threads.emplace_back([&] { pieces.work(); });
  } catch (const std::system_error& error) {
    pieces.stop();  // those that run end with their piece, and are joined by the caller
    throw Error(ErrorKind::kResourceExhausted,
                "cannot start thread " + std::to_string(threads.size() + 2) + " of " +
                    std::to_string(count + 1) + " for a kernel: " + error.what() +
                    "; use fewer threads, or raise the limit (ulimit -u)");
  }
}

void spread(int num_threads, std::int64_t n, const Piece& piece) {
  Pieces pieces(n, piece);
  {
    std::vector<std::jthread> threads;
    const std::int64_t num_others = std::min<std::int64_t>(num_threads, n) - 1;
    start(num_others, pieces, threads);
    pieces.work();
  }
  pieces.rethrow();
}

}  // namespace

void on_caller(std::int64_t n, const Piece& piece) {
  for (std::int64_t i = 0; i < n; ++i) piece(i);
}

const Spread& spread_or_caller(const Spread& spread, std::int64_t n, std::int64_t least) {
  static const Spread kCaller = on_caller;
  return n < least ? kCaller : spread;
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
