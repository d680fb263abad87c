#include "trireme/engine/operators/batch_norm.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/engine/operators/beside_torch.h"

namespace trireme::operators {
namespace {

at::Tensor torch_norm(const TensorList& x, bool has_relu) {
  at::Tensor y = at::batch_norm(x[0], x[1], x[2], {}, {}, true, 0.1, 1e-5, false);
  if (x.size() > 3) y = y + x[3];
  return has_relu ? at::relu(y) : y;
}

void expect_like_torchs_norm(const at::Tensor& input, bool has_residual, bool has_relu) {
  const std::int64_t channels = input.size(1);
  TensorList inputs = {input, torch::randn({channels}), torch::randn({channels})};
  if (has_residual) inputs.push_back(torch::randn_like(input));
  expect_like_torch(
      inputs,
      [&](const TensorList& x) {
        return batch_norm(x[0], {.weight = x[1], .bias = x[2]},
                          {.residual = has_residual ? x[3] : at::Tensor(), .has_relu = has_relu});
      },
      [&](const TensorList& x) { return torch_norm(x, has_relu); });
}

TEST(BatchNormOperator, IsTorchsInEveryLayoutWithGradients) {
  torch::manual_seed(2);
  const std::vector<at::Tensor> inputs = {
      torch::randn({7, 5}),
      torch::randn({3, 5, 11}),
      torch::randn({3, 5, 6, 7}),
      torch::randn({3, 5, 6, 7}).contiguous(at::MemoryFormat::ChannelsLast),
      torch::randn({2, 3, 4, 5, 6}).contiguous(at::MemoryFormat::ChannelsLast3d),
      torch::randn({3, 6, 7, 5}).transpose(1, 3)};
  for (const at::Tensor& input : inputs) {
    for (const bool has_residual : {false, true}) {
      expect_like_torchs_norm(input, has_residual, true);
      expect_like_torchs_norm(input, has_residual, false);
    }
  }
}

TEST(InstanceNormOperator, IsTorchsInEveryLayoutWithGradients) {
  torch::manual_seed(12);
  const std::vector<at::Tensor> inputs = {
      torch::randn({3, 5, 11}), torch::randn({3, 5, 6, 7}),
      torch::randn({3, 5, 6, 7}).contiguous(at::MemoryFormat::ChannelsLast),
      torch::randn({2, 3, 4, 5, 6}).contiguous(at::MemoryFormat::ChannelsLast3d)};
  for (const at::Tensor& input : inputs) {
    expect_like_torch(
        {input, torch::randn({input.size(1)}), torch::randn({input.size(1)})},
        [](const TensorList& x) { return instance_norm(x[0], x[1], x[2], 1e-5, true); },
        [](const TensorList& x) {
          return at::relu(at::instance_norm(x[0], x[1], x[2], {}, {}, true, 0, 1e-5, false));
        });
  }
  EXPECT_TRUE(instance_norm(inputs[2], {}, {}).is_contiguous(at::MemoryFormat::ChannelsLast));
}

/// A 3-D U-Net's layout, in one node and without a copy of each sample.
TEST(InstanceNormOperator, ChannelsLastIsOneNodeWithTheBitsOfEachSampleAlone) {
  torch::manual_seed(13);
  const at::Tensor x =
      torch::randn({3, 4, 5, 6, 7}).contiguous(at::MemoryFormat::ChannelsLast3d).requires_grad_();
  const at::Tensor weight = torch::randn({4}, torch::requires_grad()), bias = torch::randn({4});
  const at::Tensor slope = torch::randn({3, 4, 5, 6, 7});
  const at::Tensor y = instance_norm(x, weight, bias, 1e-5, true);
  EXPECT_NE(y.grad_fn()->name().find("InstanceNorm"), std::string::npos) << y.grad_fn()->name();
  const auto gradients = torch::autograd::grad({y}, {x, weight}, {slope});
  TensorList parts;
  for (const at::Tensor& sample : x.split(1)) {
    parts.push_back(batch_norm(sample, {.weight = weight, .bias = bias}, {.has_relu = true}));
  }
  const at::Tensor apart = at::cat(parts);
  EXPECT_TRUE(torch::equal(y, apart));
  const auto expected = torch::autograd::grad({apart}, {x, weight}, {slope});
  EXPECT_TRUE(torch::equal(gradients[0], expected[0]));
  EXPECT_TRUE(torch::equal(gradients[1], expected[1]));
  const int before = at::get_num_threads();
  for (const int num_threads : {1, 2, 3}) {
    at::set_num_threads(num_threads);
    const at::Tensor again = instance_norm(x, weight, bias, 1e-5, true);
    EXPECT_TRUE(torch::equal(again, y)) << num_threads << " threads";
    EXPECT_TRUE(torch::equal(torch::autograd::grad({again}, {x, weight}, {slope})[0], gradients[0]))
        << num_threads << " threads";
  }
  at::set_num_threads(before);
}

TEST(BatchNormOperator, KeepsTheLayout) {
  const at::Tensor x = torch::randn({2, 4, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(batch_norm(x, {}).is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST(BatchNormOperator, MovesRunningStatisticsAsTorchDoes) {
  const at::Tensor x = torch::randn({4, 3, 5, 5}) * 3 + 1;
  const auto statistics = [] { return std::pair(torch::zeros({3}), torch::ones({3})); };
  const auto [mean, var] = statistics();
  const auto [torch_mean, torch_var] = statistics();
  for (int i = 0; i < 3; ++i) {
    batch_norm(x, {.running_mean = mean, .running_var = var}, {.momentum = 0.3});
    at::batch_norm(x, {}, {}, torch_mean, torch_var, true, 0.3, 1e-5, false);
  }
  EXPECT_TRUE(torch::allclose(mean, torch_mean, 1e-5, 1e-7));
  EXPECT_TRUE(torch::allclose(var, torch_var, 1e-5, 1e-7));
}

TEST(BatchNormOperator, EvaluatesWithRunningStatistics) {
  const at::Tensor x = torch::randn({4, 3, 5, 5}), mean = torch::randn({3});
  const at::Tensor var = torch::rand({3}) + 0.5, residual = torch::randn_like(x);
  const at::Tensor y = batch_norm(x, {.running_mean = mean, .running_var = var},
                                  {.is_training = false, .residual = residual, .has_relu = true});
  const at::Tensor expected =
      at::relu(at::batch_norm(x, {}, {}, mean, var, false, 0.1, 1e-5, false) + residual);
  EXPECT_TRUE(torch::equal(y, expected));
}

/// y and the gradients of what it is made of, for `slope` at y.
TensorList norm_with_gradients(const TensorList& inputs, const at::Tensor& slope) {
  TensorList x;
  for (const at::Tensor& input : inputs) x.push_back(input.detach().requires_grad_());
  const at::Tensor y =
      batch_norm(x[0], {.weight = x[1], .bias = x[2]}, {.residual = x[3], .has_relu = true});
  TensorList made = torch::autograd::grad({y}, x, {slope.to(y.scalar_type())});
  made.push_back(y.detach());
  return made;
}

TEST(BatchNormOperator, OfBf16IsThatOfF32RoundedOnceAlsoUnderAutocast) {
  torch::manual_seed(3);
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor x = torch::randn({4, 20, 5, 5}).to(at::kBFloat16).contiguous(format);
    const at::Tensor residual = torch::randn_like(x), slope = torch::randn_like(x);
    const at::Tensor weight = torch::randn({20}), bias = torch::randn({20});
    const TensorList narrow = norm_with_gradients({x, weight, bias, residual}, slope);
    const TensorList wide = norm_with_gradients(
        {x.to(at::kFloat), weight, bias, residual.to(at::kFloat)}, slope.to(at::kFloat));
    TensorList cast;
    under_autocast(at::kBFloat16, [&] {
      cast = norm_with_gradients({x, weight, bias, residual.to(at::kFloat)}, slope);
      return cast[0];
    });
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const bool is_narrow = i == 0 || i > 2;
      EXPECT_EQ(narrow[i].scalar_type(), is_narrow ? at::kBFloat16 : at::kFloat) << i;
      EXPECT_TRUE(torch::equal(narrow[i], wide[i].to(narrow[i].scalar_type()))) << i;
      EXPECT_TRUE(torch::equal(cast[i].to(narrow[i].scalar_type()), narrow[i])) << i;
    }
  }
}

TEST(InstanceNormOperator, OfBf16IsThatOfF32RoundedOnceAlsoUnderAutocast) {
  torch::manual_seed(4);
  const at::Tensor weight = torch::randn({20}), bias = torch::randn({20});
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor narrow = torch::randn({4, 20, 5, 5}).to(at::kBFloat16).contiguous(format);
    const at::Tensor slope = torch::randn_like(narrow);
    const auto made = [&](at::ScalarType type) {
      const at::Tensor x = narrow.to(type).requires_grad_();
      const at::Tensor y = instance_norm(x, weight, bias, 1e-5, true);
      return std::pair(y, torch::autograd::grad({y}, {x}, {slope.to(type)})[0]);
    };
    const auto [y, dx] = made(at::kBFloat16);
    const auto [wide_y, wide_dx] = made(at::kFloat);
    EXPECT_TRUE(torch::equal(y, wide_y.to(at::kBFloat16)));
    EXPECT_TRUE(torch::equal(dx, wide_dx.to(at::kBFloat16)));
    const at::Tensor cast = under_autocast(
        at::kBFloat16, [&] { return instance_norm(narrow, weight, bias, 1e-5, true); });
    EXPECT_TRUE(torch::equal(cast, y));
  }
}

TEST(BatchNormOperator, IsGivenF32UnderAutocastToF16) {
  const at::Tensor x = torch::randn({4, 3, 5, 5}).to(at::kHalf);
  const at::Tensor y = under_autocast(
      at::kHalf, [&] { return batch_norm(x, {}, {.residual = x, .has_relu = true}); });
  const at::Tensor wide = x.to(torch::kFloat);
  EXPECT_TRUE(torch::equal(y, batch_norm(wide, {}, {.residual = wide, .has_relu = true})));
}

/// Torch's norm of each group by itself, behind each other.
at::Tensor torch_norm_by_groups(const TensorList& x, bool has_relu, std::int64_t samples) {
  TensorList parts;
  for (std::int64_t begin = 0; begin < x[0].size(0); begin += samples) {
    const std::int64_t end = std::min(begin + samples, x[0].size(0));
    TensorList group = {x[0].slice(0, begin, end), x[1], x[2]};
    if (x.size() > 3) group.push_back(x[3].slice(0, begin, end));
    parts.push_back(torch_norm(group, has_relu));
  }
  return at::cat(parts);
}

TEST(BatchNormOperator, OfGroupsIsTorchsOfEachWithGradients) {
  torch::manual_seed(5);
  const std::vector<at::Tensor> inputs = {
      torch::randn({7, 5}), torch::randn({7, 5, 11}), torch::randn({7, 5, 6, 3}),
      torch::randn({7, 20, 6, 3}).contiguous(at::MemoryFormat::ChannelsLast)};
  for (const at::Tensor& input : inputs) {
    for (const std::int64_t samples : {2, 3, 7, 9}) {
      if (input.dim() == 2 && samples != 7 && samples != 9) continue;  // the last: one element
      for (const bool has_relu : {false, true}) {
        const std::int64_t channels = input.size(1);
        expect_like_torch(
            {input, torch::randn({channels}), torch::randn({channels}), torch::randn_like(input)},
            [&](const TensorList& x) {
              return batch_norm(x[0], {.weight = x[1], .bias = x[2]},
                                {.residual = x[3], .has_relu = has_relu, .group_samples = samples});
            },
            [&](const TensorList& x) { return torch_norm_by_groups(x, has_relu, samples); });
      }
    }
  }
}

/// The bits of each group alone, on any number of threads; of one group those without groups.
TEST(BatchNormOperator, GroupsHaveTheBitsOfEachAlone) {
  torch::manual_seed(6);
  const at::Tensor x = torch::randn({6, 5, 9, 7});
  const int before = at::get_num_threads();
  for (const int num_threads : {1, 3}) {
    at::set_num_threads(num_threads);
    const at::Tensor grouped = batch_norm(x, {}, {.has_relu = true, .group_samples = 2});
    for (std::int64_t begin = 0; begin < 6; begin += 2) {
      EXPECT_TRUE(torch::equal(grouped.slice(0, begin, begin + 2),
                               batch_norm(x.slice(0, begin, begin + 2), {}, {.has_relu = true})));
    }
    EXPECT_TRUE(torch::equal(batch_norm(x, {}, {.group_samples = 6}), batch_norm(x, {})));
  }
  at::set_num_threads(before);
}

/// The mean of the groups' statistics, each by its samples.
TEST(BatchNormOperator, GroupsMoveRunningStatisticsByTheirMean) {
  torch::manual_seed(7);
  const at::Tensor x = torch::randn({5, 3, 4, 4}) * 3 + 1;
  const at::Tensor mean = torch::zeros({3}), var = torch::ones({3});
  batch_norm(x, {.running_mean = mean, .running_var = var}, {.momentum = 0.3, .group_samples = 2});
  at::Tensor means = torch::zeros({3}, torch::kDouble), variances = means.clone();
  for (const at::Tensor& group : x.to(torch::kDouble).split(2)) {
    const double share = static_cast<double>(group.size(0)) / 5;
    means += share * group.mean({0, 2, 3});
    variances += share * group.var({0, 2, 3}, /*unbiased=*/true);
  }
  EXPECT_TRUE(torch::allclose(mean.to(torch::kDouble), 0.3 * means, 1e-5, 1e-7));
  EXPECT_TRUE(torch::allclose(var.to(torch::kDouble), 0.7 + 0.3 * variances, 1e-5, 1e-7));
  const at::Tensor whole_mean = torch::zeros({3}), whole_var = torch::ones({3});
  const at::Tensor own_mean = torch::zeros({3}), own_var = torch::ones({3});
  batch_norm(x, {.running_mean = whole_mean, .running_var = whole_var}, {.group_samples = 5});
  batch_norm(x, {.running_mean = own_mean, .running_var = own_var});
  EXPECT_TRUE(torch::equal(whole_mean, own_mean) && torch::equal(whole_var, own_var));
}

TEST(BatchNormOperator, SaysWhatDoesNotFit) {
  const at::Tensor x = torch::randn({4, 3, 5, 5});
  expect_error([&] { batch_norm(x, {.weight = torch::ones({4})}); },
               "trireme::batch_norm: weight must have shape [3], has [4]");
  expect_error([&] { batch_norm(x.to(torch::kDouble), {}); },
               "input must be of type Float or BFloat16");
  expect_error([&] { batch_norm(x, {}, {.residual = x.to(at::kBFloat16)}); },
               "residual must be of type Float");
  expect_error([&] { batch_norm(x, {}, {.residual = x.slice(0, 0, 2)}); },
               "residual must have shape [4, 3, 5, 5]");
  expect_error([&] { batch_norm(torch::randn({1, 3}), {}); }, "2 elements or more");
  expect_error([&] { batch_norm(torch::randn({3, 3}), {}, {.group_samples = 2}); },
               "2 elements or more");
  expect_error([&] { batch_norm(x, {}, {.group_samples = -1}); }, "group_samples is -1");
  expect_error([&] { batch_norm(x, {}, {.is_training = false}); },
               "evaluation needs running_mean and running_var");
  expect_error([&] { instance_norm(x, torch::ones({4}), {}); },
               "trireme::instance_norm: weight must have shape [3], has [4]");
  expect_error([&] { batch_norm(x.to_sparse(), {}); },
               "input must be a dense tensor on the CPU, is Sparse on cpu");
}

}  // namespace
}  // namespace trireme::operators
