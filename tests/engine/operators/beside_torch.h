#pragma once

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

#include "trireme/error.h"

namespace trireme::operators {

using TensorList = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const TensorList&)>;

/// Output and gradients of `ours` in f32 are those of `theirs` in f64, within f32's rounding.
inline void expect_like_torch(const TensorList& inputs, const Function& ours,
                              const Function& theirs) {
  TensorList own, exact;
  for (const at::Tensor& input : inputs) {
    own.push_back(input.detach().clone(at::MemoryFormat::Preserve).requires_grad_());
    exact.push_back(input.detach().to(torch::kDouble).requires_grad_());
  }
  const at::Tensor out = ours(own), expected = theirs(exact);
  ASSERT_EQ(out.sizes(), expected.sizes());
  const at::Tensor weights = torch::randn_like(out);
  (out * weights).sum().backward();
  (expected * weights.to(torch::kDouble)).sum().backward();
  const auto expect_close = [](const at::Tensor& a, const at::Tensor& b, const std::string& what) {
    const double scale = b.abs().max().item<double>();
    EXPECT_LE((a.to(torch::kDouble) - b).abs().max().item<double>(), 2e-5 * scale + 1e-7) << what;
  };
  expect_close(out.detach(), expected.detach(), "output");
  for (std::size_t i = 0; i < own.size(); ++i) {
    expect_close(own[i].grad(), exact[i].grad(), "gradient " + std::to_string(i));
  }
}

/// What `call` gives under torch's autocast.
inline at::Tensor under_autocast(at::ScalarType dtype, const std::function<at::Tensor()>& call) {
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, dtype);
  const at::Tensor result = call();
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  return result;
}

/// `call` throws kInvalidArgument with `text` in its message.
inline void expect_error(const std::function<void()>& call, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), testing::HasSubstr(text));
  }
}

}  // namespace trireme::operators
