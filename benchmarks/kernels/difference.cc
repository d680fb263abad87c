#include "benchmarks/kernels/difference.h"

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

/// The root of the mean square of what is finite.
double rms(const HostTensor& tensor) {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < num_elements(tensor); ++i) {
    const double x = element(tensor, i);
    if (!std::isfinite(x)) continue;
    sum += x * x;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

/// The element of two tensors that differs most, and by how much.
struct LargestPlace {
  double difference = 0;
  std::size_t index = 0;
};

LargestPlace largest_difference(const HostTensor& a, const HostTensor& b) {
  const double usual_size = rms(b);
  LargestPlace largest;
  for (std::size_t i = 0; i < num_elements(b); ++i) {
    const double x = element(a, i);
    const double y = element(b, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    double difference = std::abs(x - y) / std::max(usual_size, std::abs(y));
    if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
    if (difference > largest.difference) largest = {difference, i};
  }
  return largest;
}

}  // namespace

Difference compare(const Tensors& a, const Tensors& b, const Tolerances& tolerances) {
  Difference all;
  std::size_t num_compared = 0;
  for (const auto& [name, tensor] : b.all()) {
    if (!a.has(name) || a.at(name).shape != tensor.shape) {
      return {.where = name + (a.has(name) ? " has another shape" : " is missing"),
              .is_comparable = false};
    }
    num_compared += num_elements(tensor);
    const LargestPlace place = largest_difference(a.at(name), tensor);
    if (place.difference == 0) continue;
    all.largest = std::max(all.largest, place.difference);
    const auto own = tolerances.of.find(name);
    const double tolerance = own == tolerances.of.end() ? tolerances.usual : own->second;
    const double excess = place.difference / tolerance;
    if (excess <= all.excess) continue;
    all.excess = excess;
    all.where = name + "[" + std::to_string(place.index) + "]";
  }
  if (num_compared == 0) return {.where = "it gave nothing", .is_comparable = false};
  return all;
}

}  // namespace trireme::kernels::bench
