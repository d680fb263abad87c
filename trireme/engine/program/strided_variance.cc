#include "trireme/engine/program/strided_variance.h"

#include <ATen/Functions.h>
#include <ATen/TensorIterator.h>

namespace trireme::program {

bool is_strided(const at::Tensor& input) {
  return !input.is_contiguous() && !input.is_contiguous(at::MemoryFormat::ChannelsLast) &&
         !input.is_contiguous(at::MemoryFormat::ChannelsLast3d);
}

at::Tensor strided_variance(const at::Tensor& input, const at::Tensor& mean) {
  at::Tensor variance = at::empty({input.size(1)}, at::kDouble);
  for (std::int64_t c = 0; c < input.size(1); ++c) {
    const at::Tensor channel = input.select(1, c);
    const double center = mean[c].item<float>();
    double sum = 0;
    const auto add = [&](char** data, const std::int64_t* strides, std::int64_t size0,
                         std::int64_t size1) {
      for (std::int64_t j = 0; j < size1; ++j) {
        const char* at = data[0] + j * strides[1];
        for (std::int64_t i = 0; i < size0; ++i, at += strides[0]) {
          const double away = *reinterpret_cast<const float*>(at) - center;
          sum += away * away;
        }
      }
    };
    auto elements = at::TensorIteratorConfig().add_const_input(channel).build();
    elements.serial_for_each(add, {0, channel.numel()});
    variance[c] = sum / static_cast<double>(channel.numel() - 1);
  }
  return variance;
}

}  // namespace trireme::program
