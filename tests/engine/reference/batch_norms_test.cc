#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/engine/reference/plain_at_every_cut.h"
#include "trireme/engine/operators/batch_norm.h"
#include "trireme/model.h"

namespace trireme::reference {
namespace {

using Arrange = at::Tensor (*)(const at::Tensor& x_NCT);

/// How a batch [N, C, T] lies in memory when it comes to the norm.
struct Lie {
  const char* name;
  Arrange arrange;
};

const Lie kLies[] = {
    {"dense", [](const at::Tensor& x) { return x; }},
    {"channels_last",
     [](const at::Tensor& x) {
       return x.unsqueeze(3).contiguous(at::MemoryFormat::ChannelsLast) + 0;
     }},
    {"transposed", [](const at::Tensor& x) { return x.transpose(1, 2).clone().transpose(1, 2); }},
    {"part", [](const at::Tensor& x) { return at::cat({x, x}, 2).slice(2, 1, 6); }},
    {"flat", [](const at::Tensor& x) { return x.select(2, 0).t().clone().t(); }},
};

struct Normed : torch::nn::Module {
  Normed(Arrange to_arrange, at::ScalarType type, double momentum)
      : arrange(to_arrange),
        weight(register_parameter("weight", at::randn({3, 6}, type))),
        norm(register_module(
            "norm", torch::nn::BatchNorm1d(torch::nn::BatchNormOptions(6).momentum(momentum)))) {
    norm->to(type);
    norm->running_mean.normal_();
    norm->running_var.uniform_(0.5, 2);
  }

  Losses forward(const Batch& batch) {
    const at::Tensor x_NTC = at::matmul(batch["x"].to(weight.scalar_type()), weight);
    const at::Tensor x = arrange(x_NTC.transpose(1, 2).contiguous());
    const at::Tensor y =
        at::batch_norm(x, norm->weight, norm->bias, norm->running_mean, norm->running_var,
                       is_training(), *norm->options.momentum(), 1e-5, false);
    return {mean_loss(y.to(at::kFloat).square().mean() + y.to(at::kFloat).abs().mean())};
  }

  Arrange arrange;
  at::Tensor weight;
  torch::nn::BatchNorm1d norm;
};

models::TestModel test_model(const Lie& lie, at::ScalarType type, double momentum) {
  torch::manual_seed(11);
  models::TestModel test;
  test.model = make_model(std::make_shared<Normed>(lie.arrange, type, momentum));
  test.make_batch = [](std::int64_t size, std::uint64_t seed) {
    torch::manual_seed(static_cast<std::uint64_t>(seed));
    Batch batch;
    batch.set("x", at::randn({size, 7, 3}) * 3 + 1);
    return batch;
  };
  return test;
}

/// Statistics that a step leaves are those of the plain model, whatever the memory and the numbers.
TEST(BatchNorms, RunningStatisticsHaveTheBitsOfThePlainModel) {
  for (const Lie& lie : kLies) {
    for (const double momentum : {0.03, 0.7}) {
      for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
        SCOPED_TRACE(std::string(lie.name) + ", " + std::to_string(momentum) + ", " +
                     c10::toString(type));
        Trial trial(test_model(lie, type, momentum), {.global_batch = 12, .microbatch = 3});
        expect_plain_at_every_cut(trial);
      }
      for (const Precision precision : {Precision::kBf16, Precision::kF16}) {
        SCOPED_TRACE(std::string(lie.name) + ", " + std::to_string(momentum) + ", narrow");
        models::TestModel test = test_model(lie, at::kFloat, momentum);
        test.model = with_precision(std::move(test.model), precision);
        Trial trial(std::move(test), {.global_batch = 12, .microbatch = 3});
        expect_plain_at_every_cut(trial);
      }
    }
  }
}

}  // namespace
}  // namespace trireme::reference
