#pragma once

#include <cstdint>

#include "trireme/base/random.h"

namespace trireme::text {

/// Draws of one stream, one after the other: a pure function of it. Caller-synchronised.
class Draws {
 public:
  explicit Draws(std::uint64_t stream) : stream_(stream) {}

  /// Below `count`; each as likely, to 1 in 2^32 of it.
  std::int64_t below(std::int64_t count) {
    const std::uint64_t draw = stream_seed(stream_, {next_++});
    return static_cast<std::int64_t>(
        static_cast<unsigned __int128>(draw) * static_cast<unsigned __int128>(count) >> 64);
  }

  /// True with this probability, to 1 in 2^32 of it.
  bool happens(double probability) {
    constexpr double kParts = std::uint64_t{1} << 32;
    return static_cast<double>(below(std::int64_t{1} << 32)) < probability * kParts;
  }

 private:
  std::uint64_t stream_;
  std::uint64_t next_ = 0;
};

}  // namespace trireme::text
