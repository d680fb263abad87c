#include "trireme/kernels/bench/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trireme/kernels/half.h"

namespace trireme::kernels::bench {
namespace {

template <typename T>
double element(const HostTensor& tensor, std::size_t i) {
  const T* data = reinterpret_cast<const T*>(tensor.bytes.data());
  if constexpr (std::is_same_v<T, Bf16> || std::is_same_v<T, F16>) {
    return static_cast<double>(to_f32(data[i]));
  } else {
    return static_cast<double>(data[i]);
  }
}

double element(const HostTensor& tensor, std::size_t i) {
  switch (tensor.dtype) {
    case Dtype::kF64:
      return element<double>(tensor, i);
    case Dtype::kF32:
      return element<float>(tensor, i);
    case Dtype::kBf16:
      return element<Bf16>(tensor, i);
    case Dtype::kF16:
      return element<F16>(tensor, i);
    case Dtype::kI64:
      return element<std::int64_t>(tensor, i);
    case Dtype::kI32:
      return element<std::int32_t>(tensor, i);
    default:
      return element<std::uint8_t>(tensor, i);
  }
}

std::size_t num_elements(const HostTensor& tensor) {
  return tensor.bytes.size() / size_bytes(tensor.dtype);
}

void compare(const std::string& name, const HostTensor& a, const HostTensor& b, Difference& all) {
  const std::size_t n = num_elements(b);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = element(a, i);
    const double y = element(b, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    double difference = std::abs(x - y) / std::max(1.0, std::abs(y));
    if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
    if (difference <= all.largest) continue;
    all.largest = difference;
    all.where = name + "[" + std::to_string(i) + "]";
  }
}

}  // namespace

Difference compare(const Tensors& a, const Tensors& b) {
  Difference all;
  std::size_t num_compared = 0;
  for (const auto& [name, tensor] : b.all()) {
    if (!a.has(name) || a.at(name).shape != tensor.shape) {
      return {.where = name + (a.has(name) ? " has another shape" : " is missing"),
              .is_comparable = false};
    }
    compare(name, a.at(name), tensor, all);
    num_compared += num_elements(tensor);
  }
  if (num_compared == 0) return {.where = "it gave nothing", .is_comparable = false};
  return all;
}

}  // namespace trireme::kernels::bench
