#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trireme/dtype.h"
#include "trireme/error.h"

namespace trireme::kernels::bench {

/// A dense tensor in C order.
struct HostTensor {
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

/// What a kernel is given or gives back, by name, and numbers and words beside it: in a safetensors
/// file what other languages read.
class Tensors {
 public:
  std::map<std::string, std::string> options;  ///< The file's metadata.

  /// Zeros, to be filled. An older one of that name is replaced.
  template <typename T>
  std::span<T> add(const std::string& name, std::vector<std::int64_t> shape) {
    HostTensor& tensor = insert(name, dtype_of<T>(), std::move(shape));
    return {reinterpret_cast<T*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(T)};
  }

  /// Errors   kInvalidArgument where there is none of that name and type.
  template <typename T>
  std::span<const T> get(const std::string& name) const {
    const HostTensor& tensor = find(name, dtype_of<T>());
    return {reinterpret_cast<const T*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(T)};
  }

  bool has(const std::string& name) const { return tensors_.contains(name); }
  const HostTensor& at(const std::string& name) const;
  const std::map<std::string, HostTensor>& all() const { return tensors_; }

  /// An option as a number; kInvalidArgument where it is missing or none.
  double number(const std::string& option) const;

  void write(const std::filesystem::path& path) const;
  static Tensors read(const std::filesystem::path& path);

 private:
  /// Of f64, f32, bf16, f16, i64, i32 and u8.
  template <typename T>
  static Dtype dtype_of();

  HostTensor& insert(const std::string& name, Dtype dtype, std::vector<std::int64_t> shape);
  const HostTensor& find(const std::string& name, Dtype dtype) const;

  std::map<std::string, HostTensor> tensors_;
};

}  // namespace trireme::kernels::bench
