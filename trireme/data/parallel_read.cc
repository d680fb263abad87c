#include "trireme/data/parallel_read.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "trireme/error.h"

namespace trireme::data {
namespace {

/// Bytes of each field of a sample. Refuses destinations that do not fit.
std::vector<std::size_t> field_bytes(const Source& source, std::size_t num_samples,
                                     std::span<const std::span<std::byte>> destinations) {
  const auto& fields = source.fields();
  if (destinations.size() != fields.size()) {
    throw Error(ErrorKind::kInvalidArgument,
                "reading samples: expected " + std::to_string(fields.size()) +
                    " destinations, got " + std::to_string(destinations.size()));
  }
  std::vector<std::size_t> bytes;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    bytes.push_back(static_cast<std::size_t>(fields[f].num_bytes()));
    if (destinations[f].size() == bytes[f] * num_samples) continue;
    throw Error(ErrorKind::kInvalidArgument, "reading samples: field '" + fields[f].name + "' of " +
                                                 std::to_string(num_samples) + " samples takes " +
                                                 std::to_string(bytes[f] * num_samples) +
                                                 " bytes, got " +
                                                 std::to_string(destinations[f].size()));
  }
  return bytes;
}

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

void read_samples(const Source& source, std::span<const Sample> samples,
                  std::span<const std::span<std::byte>> destinations,
                  const kernels::Spread& spread) {
  const std::vector<std::size_t> bytes = field_bytes(source, samples.size(), destinations);
  FirstFailure failure(std::ssize(samples));
  spread(std::ssize(samples), [&](std::int64_t index) {
    if (failure.is_behind(index)) return;
    const auto i = static_cast<std::size_t>(index);
    std::vector<std::span<std::byte>> places;
    for (std::size_t f = 0; f < bytes.size(); ++f) {
      places.push_back(destinations[f].subspan(i * bytes[f], bytes[f]));
    }
    try {
      source.read(samples[i], places);
    } catch (...) {
      failure.add(index, std::current_exception());
    }
  });
  failure.rethrow();
}

}  // namespace trireme::data
