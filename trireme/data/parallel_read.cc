#include "trireme/data/parallel_read.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

namespace trireme::data {
namespace {

/// The failure with the least index. Thread-safe.
class FirstFailure {
 public:
  explicit FirstFailure(std::int64_t num_samples) : index_(num_samples) {}

  /// Whether a sample of this index need not be read: one before it has failed.
  bool is_behind(std::int64_t index) const { return index > index_; }

  void add(std::int64_t index, std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (is_behind(index)) return;
    index_ = index;
    failure_ = std::move(failure);
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::atomic<std::int64_t> index_;
  std::mutex mutex_;  // for what follows
  std::exception_ptr failure_;
};

}  // namespace

void read_each(std::int64_t count, const kernels::Piece& read, const kernels::Spread& spread) {
  FirstFailure failure(count);
  spread(count, [&](std::int64_t index) {
    if (failure.is_behind(index)) return;
    try {
      read(index);
    } catch (...) {
      failure.add(index, std::current_exception());
    }
  });
  failure.rethrow();
}

}  // namespace trireme::data
