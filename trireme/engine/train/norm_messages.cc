#include "trireme/engine/train/norm_messages.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstring>

#include "trireme/base/check.h"
#include "trireme/error.h"

namespace trireme::train {
namespace {

at::Tensor take(std::span<const std::byte>& bytes, const at::Tensor& like) {
  at::Tensor tensor = at::empty(like.sizes(), like.options());
  TRIREME_CHECK(bytes.size() >= tensor.nbytes(), "statistics of replicas differ in size");
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), tensor.nbytes());
  bytes = bytes.subspan(tensor.nbytes());
  return tensor;
}

void append(std::vector<std::byte>& bytes, const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  const auto* data = static_cast<const std::byte*>(dense.const_data_ptr());
  bytes.insert(bytes.end(), data, data + dense.nbytes());
}

}  // namespace

bool has_statistics(const Statistics& statistics) {
  return std::any_of(statistics.begin(), statistics.end(),
                     [](const auto& microbatch) { return !microbatch.empty(); });
}

std::vector<std::byte> to_bytes(const Statistics& statistics) {
  std::vector<std::byte> bytes;
  for (const auto& microbatch : statistics) {
    for (const program::NormStatistics& one : microbatch) {
      append(bytes, one.mean);
      append(bytes, one.variance);
    }
  }
  return bytes;
}

Statistics from_bytes(std::span<const std::byte> bytes, const Statistics& like, int num_replicas) {
  Statistics result;
  for (int replica = 0; replica < num_replicas; ++replica) {
    for (const auto& microbatch : like) {
      result.emplace_back();
      for (const program::NormStatistics& one : microbatch) {
        const at::Tensor mean = take(bytes, one.mean);
        result.back().push_back({one.node, mean, take(bytes, one.variance)});
      }
    }
  }
  return result;
}

}  // namespace trireme::train
