#pragma once

#include <cstdint>
#include <memory>
#include <new>

namespace trireme::kernels {

/// Floats that a kernel works with, in whole cache lines, not set.
class ScratchFloats {
 public:
  explicit ScratchFloats(std::int64_t num_floats)
      : floats_(static_cast<float*>(
            ::operator new(static_cast<std::size_t>(num_floats) * sizeof(float), kLine))) {}
  float* floats() const { return floats_.get(); }

 private:
  static constexpr std::align_val_t kLine{64};
  struct Free {
    void operator()(float* floats) const { ::operator delete(floats, kLine); }
  };
  std::unique_ptr<float, Free> floats_;
};

}  // namespace trireme::kernels
