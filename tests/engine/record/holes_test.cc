#include <ATen/functorch/DynamicLayer.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "trireme/engine/record/recording.h"
#include "trireme/error.h"
#include "trireme/model.h"

namespace trireme::record {
namespace {

struct Parts : torch::nn::Module {
  torch::nn::Linear linear{4, 4};
  torch::Tensor frozen;
  torch::Tensor counter;
  torch::Tensor unregistered = torch::ones({4});
  int calls = 0;

  Parts() {
    register_module("linear", linear);
    frozen = register_parameter("frozen", torch::ones({4}), /*requires_grad=*/false);
    counter = register_buffer("counter", torch::zeros({4}));
  }
};

using Forward = torch::Tensor (*)(Parts& p, const torch::Tensor& x);

/// Something a replay could not repeat, and what the refusal has to say about it.
struct Hole {
  const char* name;
  Forward forward;
  const char* message;
};

/// Multiplies the gradient by -1: C++ autograd, invisible to the dispatcher.
struct Reversal : torch::autograd::Function<Reversal> {
  static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& x) {
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {-gradients[0]};
  }
};

struct Doubling : torch::autograd::Function<Doubling> {
  static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& x) {
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0] * 2};
  }
};

const Hole kHoles[] = {
    {"item",
     [](Parts& p, const torch::Tensor& x) {
       const auto y = p.linear(x);
       return y.sum() * y.abs().max().item<float>();
     },
     "aten::item"},
    {"item_of_a_buffer",
     [](Parts& p, const torch::Tensor& x) {
       const auto y = p.linear(x).sum();
       return p.counter.abs().sum().item<float>() > 0 ? y : y * 2;
     },
     "the tensor comes from the buffer 'counter'"},
    {"allclose",
     [](Parts& p, const torch::Tensor& x) {
       const auto y = p.linear(x).sum();
       return torch::allclose(x, x * 1) ? y : y * 2;
     },
     "the tensor comes from the input 'x'"},
    {"is_nonzero",
     [](Parts& p, const torch::Tensor& x) {
       const auto y = p.linear(x);
       return (y.sum() > 0).is_nonzero() ? y.sum() : y.mean();
     },
     "aten::is_nonzero"},
    {"set_data",
     [](Parts& p, const torch::Tensor& x) {
       auto y = torch::ones({4});
       y.set_data(x.sum(0).detach());
       return (p.linear(x) * y).sum();
     },
     "set_data"},
    {"tensor_hook",
     [](Parts& p, const torch::Tensor& x) {
       const auto y = p.linear(x);
       y.register_hook([](const torch::Tensor& gradient) { return gradient * 2; });
       return y.sum();
     },
     "hook"},
    {"hook_on_a_parameter",
     [](Parts& p, const torch::Tensor& x) {
       if (p.calls++ == 0) p.linear->weight.register_hook([](torch::Tensor g) { return g * 2; });
       return p.linear(x).sum();
     },
     "hook"},
    {"autograd_grad_inside",
     [](Parts& p, const torch::Tensor& x) {
       const auto y = p.linear(x).square().sum();
       const auto gradient = torch::autograd::grad({y}, {p.linear->weight}, {}, true, true)[0];
       return y + gradient.square().sum();
     },
     "foreign region"},
    {"requires_grad_set_by_hand",
     [](Parts& p, const torch::Tensor& x) {
       const auto input = x.detach().requires_grad_(true);
       return p.linear(input).square().sum();
     },
     "set by hand"},
    {"backward_inside",
     [](Parts& p, const torch::Tensor& x) {
       p.linear(x).sum().backward();
       return p.linear(x).sum();
     },
     "inside forward"},
    {"autograd_function",
     [](Parts& p, const torch::Tensor& x) { return Doubling::apply(p.linear(x)).sum(); },
     "autograd::Function"},
    {"autograd_function_that_views",
     [](Parts& p, const torch::Tensor& x) { return Reversal::apply(p.linear(x)).sum(); },
     "autograd::Function"},
    {"functorch",
     [](Parts& p, const torch::Tensor& x) {
       at::functorch::initAndPushDynamicLayer(at::functorch::TransformType::Vmap, x.size(0),
                                              at::functorch::RandomnessType::Error);
       struct Pop {
         ~Pop() { at::functorch::popDynamicLayerAndDeleteMetadata(); }
       } pop;
       return p.linear(x).sum();
     },
     "functorch"},
    {"module_built_inside_forward",
     [](Parts& p, const torch::Tensor& x) {
       torch::nn::Linear fresh(4, 4);
       return fresh(p.linear(x)).sum();
     },
     "module built there"},
    {"leaf_made_inside_forward",
     [](Parts& p, const torch::Tensor& x) {
       auto total = torch::zeros({});
       total.requires_grad_(true);
       return total + p.linear(x).sum();
     },
     "leaf made inside forward"},
    {"parameter_frozen_for_one_use",
     [](Parts& p, const torch::Tensor& x) {
       const auto y = p.linear(x);
       p.linear->weight.requires_grad_(false);
       const auto z = (y * p.linear->weight.sum(0)).sum();
       p.linear->weight.requires_grad_(true);
       return z;
     },
     "'linear.weight', whose requires_grad was taken off inside forward"},
    {"parameter_trained_from_the_first_forward_on",
     [](Parts& p, const torch::Tensor& x) {
       p.frozen.requires_grad_(true);
       return (p.linear(x) * p.frozen).sum();
     },
     "'frozen', whose requires_grad was set inside forward"},
    {"parameter_left_frozen_by_forward",
     [](Parts& p, const torch::Tensor& x) {
       const auto y = p.linear(x).sum();
       p.linear->bias.requires_grad_(false);
       return y;
     },
     "'linear.bias', whose requires_grad was taken off inside forward"},
    {"input_that_requires_a_gradient",
     [](Parts& p, const torch::Tensor& x) {
       x.set_requires_grad(true);
       return p.linear(x).square().sum();
     },
     "set by hand"},
    {"data_of_a_result",
     [](Parts& p, const torch::Tensor& x) {
       const auto y = p.linear(x);
       return (y * y.data()).sum();
     },
     "shares memory"},
    {"data_of_a_parameter",
     [](Parts& p, const torch::Tensor& x) { return (p.linear(x) * p.linear->bias.data()).sum(); },
     "shares memory"},
    {"write_to_a_parameter",
     [](Parts& p, const torch::Tensor& x) {
       {
         const torch::NoGradGuard no_grad;
         p.linear->bias.mul_(0.5);
       }
       return p.linear(x).sum();
     },
     "writes to a parameter"},
    {"write_to_an_unregistered_tensor",
     [](Parts& p, const torch::Tensor& x) {
       p.unregistered.add_(1);
       return (p.linear(x) * p.unregistered).sum();
     },
     "make it a buffer"},
    {"shape_from_data",
     [](Parts& p, const torch::Tensor& x) {
       const auto y = p.linear(x);
       return y.index({y > 0}).sum();
     },
     "shape"},
    {"nonzero",
     [](Parts& p, const torch::Tensor& x) { return p.linear(x).sum() * (x > 0).nonzero().sum(); },
     "depends on data"},
    {"mask_that_happens_to_be_all_true",
     [](Parts& p, const torch::Tensor& x) {
       const auto chosen = p.linear(x).index({x.sum(1) < 1e9});
       return chosen.sum() / chosen.size(0);
     },
     "depends on data"},
    {"where_that_finds_positions",
     [](Parts& p, const torch::Tensor& x) {
       return p.linear(x).sum() * torch::where(x > -1e9)[0].sum();
     },
     "depends on data"},
    {"generator_of_its_own",
     [](Parts& p, const torch::Tensor& x) {
       auto generator = at::make_generator<at::CPUGeneratorImpl>(1);
       return (p.linear(x) + torch::randn({4}, generator)).sum();
     },
     "generator of its own"},
    {"number_that_is_not_linear_in_the_batch",
     [](Parts& p, const torch::Tensor& x) {
       return p.linear(x).sum() * (1.0 / static_cast<double>(x.size(0)));
     },
     "does not grow linearly"},
    {"shape_that_is_not_linear_in_the_batch",
     [](Parts& p, const torch::Tensor& x) {
       return torch::mm(p.linear(x), x.t()).view({-1}).mean();
     },
     "does not grow linearly"},
    {"branch_on_the_batch_size",
     [](Parts& p, const torch::Tensor& x) {
       const auto y = p.linear(x);
       return x.size(0) > 5 ? torch::relu(y).sum() : y.sum();
     },
     "aten::relu"},
    {"branch_on_host_state",
     [](Parts& p, const torch::Tensor& x) {
       const auto y = p.linear(x);
       return ++p.calls % 2 == 0 ? torch::tanh(y).sum() : torch::relu(y).sum();
     },
     "differs between recordings"},
    {"host_number_that_changes",
     [](Parts& p, const torch::Tensor& x) {
       p.calls = p.calls * 3 + 1;
       return p.linear(x).sum() * static_cast<double>(p.calls);
     },
     "step scalar"},
    {"constant_that_changes",
     [](Parts& p, const torch::Tensor& x) {
       const auto n = static_cast<float>(++p.calls);
       auto filled_by_hand = torch::empty({4});
       for (int i = 0; i < 4; ++i) filled_by_hand.mutable_data_ptr<float>()[i] = n;
       return (p.linear(x) * filled_by_hand).sum();
     },
     "constant tensor"},
};

Model make(Forward forward) {
  torch::manual_seed(0);
  const auto parts = std::make_shared<Parts>();
  return make_model(parts,
                    [parts, forward](const Batch& batch) { return forward(*parts, batch["x"]); });
}

Batch make_batch(std::int64_t size, std::uint64_t seed) {
  Batch batch;
  batch.set("x", torch::randn({size, 4}, at::make_generator<at::CPUGeneratorImpl>(seed + 1)));
  return batch;
}

class Holes : public testing::TestWithParam<Hole> {};

TEST_P(Holes, IsRefusedByName) {
  const Model model = make(GetParam().forward);
  try {
    record(model, make_batch, graph::Mode::kTrain);
    FAIL() << "was recorded";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), testing::HasSubstr(GetParam().message));
    // Each says what to do.
    EXPECT_THAT(error.message(), testing::AnyOf(testing::HasSubstr("trireme::opaque"),
                                                testing::HasSubstr("leave it out"),
                                                testing::HasSubstr("parameter.detach()"),
                                                testing::HasSubstr("Only the optimizer")));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Holes, testing::ValuesIn(kHoles),
                         [](const auto& info) { return info.param.name; });

TEST(Holes, RefusalNamesTheOperatorAndTheNearestParameter) {
  const Model model = make([](Parts& p, const torch::Tensor& x) {
    const auto y = p.linear(x);
    return y.sum() * y.max().item<float>();
  });
  try {
    record(model, make_batch, graph::Mode::kTrain);
    FAIL() << "was recorded";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("aten::item"));
    EXPECT_THAT(error.message(), testing::HasSubstr("near parameter 'linear."));
  }
}

TEST(Losses, AModelWithoutALossIsToldWhatToReturn) {
  Model model = make([](Parts& p, const torch::Tensor& x) { return p.linear(x).sum(); });
  const auto message = [&](const std::function<Losses(const Batch&)>& forward) -> std::string {
    model.forward = forward;
    try {
      record(model, make_batch, graph::Mode::kTrain);
    } catch (const Error& error) {
      return error.message();
    }
    return "was recorded";
  };
  const auto& weight = model.parameters[1].tensor;
  EXPECT_THAT(message([](const Batch&) { return Losses{}; }), testing::HasSubstr("no loss"));
  EXPECT_THAT(message([](const Batch&) { return Losses{mean_loss({})}; }),
              testing::HasSubstr("undefined"));
  EXPECT_THAT(message([&](const Batch& b) { return Losses{mean_loss(torch::mm(b["x"], weight))}; }),
              testing::HasSubstr("2 dimensions"));
  EXPECT_THAT(message([](const Batch& b) { return Losses{mean_loss(b["x"].sum())}; }),
              testing::HasSubstr("no trainable parameter"));
  EXPECT_THAT(message([&](const Batch& b) {
                const auto y = torch::mm(b["x"], weight);
                return Losses{sum_loss(y.sum(), y.abs().sum().detach())};
              }),
              testing::HasSubstr("weight"));
  EXPECT_THAT(message([](const Batch& b) { return Losses{mean_loss(b["y"].sum())}; }),
              testing::HasSubstr("no field 'y'; it has: x"));
}

}  // namespace
}  // namespace trireme::record
