#pragma once

#include <cstdint>

#include "trireme/base/random.h"

namespace trireme::vision::internal {

/// Numbers of one stream, one after the other. Caller-synchronised.
class Uniform {
 public:
  explicit Uniform(std::uint64_t stream) : stream_(stream) {}

  /// In [low, high).
  double between(double low, double high) { return low + (high - low) * next(); }

  /// In [0, count); each as likely, to count in 2^53.
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(next() * static_cast<double>(count));
  }

 private:
  double next() {
    constexpr double kStep = 0x1p-53;
    return static_cast<double>(stream_seed(stream_, {count_++}) >> 11) * kStep;
  }

  std::uint64_t stream_;
  std::uint64_t count_ = 0;
};

}  // namespace trireme::vision::internal
