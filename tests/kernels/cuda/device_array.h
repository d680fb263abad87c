#pragma once

// Vectors of the host in memory of GPU 0, for tests.

#include <span>
#include <vector>

#include "trireme/base/cuda/memory.h"
#include "trireme/base/cuda/stream.h"

namespace trireme::kernels::cuda {

template <typename T>
class DeviceArray {
 public:
  DeviceArray(const std::vector<T>& values, Stream& stream)
      : size_(values.size()), memory_(0, values.size() * sizeof(T)), stream_(stream) {
    trireme::cuda::copy_bytes(memory_.bytes(), std::as_bytes(std::span(values)), stream);
  }

  T* data() const { return reinterpret_cast<T*>(memory_.bytes().data()); }

  /// What the work before has made of it.
  std::vector<T> values() const {
    std::vector<T> values(size_);
    trireme::cuda::copy_bytes(std::as_writable_bytes(std::span(values)), memory_.bytes(), stream_);
    stream_.wait();
    return values;
  }

 private:
  std::size_t size_;
  trireme::cuda::DeviceMemory memory_;
  Stream& stream_;
};

}  // namespace trireme::kernels::cuda
