#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "trireme/base/files.h"
#include "trireme/base/safetensors.h"

namespace trireme::recipes {

/// A weight by a formula of its name; that of the recipes' make_parity.py.
inline void fill_weight(const std::string& name, torch::Tensor weight) {
  const auto begin = std::accumulate(name.begin(), name.end(), std::int64_t{0});
  const auto i = torch::arange(begin, begin + weight.numel()).to(torch::kDouble);
  const auto wave = torch::sin(1e-3 * i * i).reshape(weight.sizes());
  const double scale = 1.5 / std::sqrt(static_cast<double>(weight.size(-1)));
  const torch::NoGradGuard no_grad;
  weight.copy_(weight.dim() == 1 ? 1 + 0.1 * wave : scale * wave);
}

inline void fill_weights(torch::nn::Module& model) {
  for (const auto& item : model.named_parameters()) fill_weight(item.key(), item.value());
}

/// Numbers of another program, from a file that make_parity.py wrote.
class ExpectedNumbers {
 public:
  /// limit   of the largest difference of an element, as a part of the largest element.
  ExpectedNumbers(const std::string& file, double limit)
      : limit_(limit), bytes_(read_file_bytes(file)) {
    for (const safetensors::Tensor& tensor : safetensors::parse(bytes_, file).tensors) {
      const auto values = reinterpret_cast<const float*>(tensor.bytes.data());
      tensors_[tensor.name] = torch::from_blob(const_cast<float*>(values), tensor.shape);
    }
  }

  const torch::Tensor& at(const std::string& name) const { return tensors_.at(name); }

  void expect_close(const std::string& name, const torch::Tensor& actual) const {
    const torch::Tensor& expected = at(name);
    ASSERT_EQ(actual.sizes(), expected.sizes()) << name;
    const double largest = expected.abs().max().item<double>();
    const double difference = (actual - expected).abs().max().item<double>();
    EXPECT_LE(difference, limit_ * largest) << name;
    EXPECT_GT(largest, 0) << name;
  }

 private:
  double limit_;
  std::vector<std::byte> bytes_;
  std::map<std::string, torch::Tensor> tensors_;
};

}  // namespace trireme::recipes
