#include "trireme/engine/parameters/optimizers/optimizer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "tests/engine/parameters/optimizers/updates.h"
#include "tests/models/models.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::parameters {
namespace {

/// A model's parameters in a store, beside the same parameters under torch's own optimizer.
struct Pair {
  models::TestModel test = models::make("unet");
  record::Recording recording = record::record(test.model, test.make_batch, graph::Mode::kTrain);
  std::vector<at::Tensor> theirs;
  layout::Plan plan = layout::make_manual_plan(recording.graph,
                                               graph::graph_sha256(recording.graph), {}, {4, 4, 1});
  std::unique_ptr<ParameterStore> store;
  std::unique_ptr<GradientBuffers> gradients;

  Pair() {
    for (const NamedTensor& item : test.model.parameters) {
      theirs.push_back(item.tensor.detach().clone().requires_grad_(true));
    }
    store = std::make_unique<ParameterStore>(layout::make_parameter_map(recording.graph, plan),
                                             recording.graph, recording.tensors,
                                             ParameterStore::Options{});
    gradients = std::make_unique<GradientBuffers>(store->make_gradients());
  }

  void fill_gradients(int step) {
    torch::manual_seed(step);
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      theirs[i].mutable_grad() =
          torch::randn_like(theirs[i].detach()) * std::pow(10.0, step % 3 - 1);
      store->gradient_view(*gradients, test.model.parameters[i].name, 0).copy_(theirs[i].grad());
    }
  }

  void expect_equal(int step) const {
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      EXPECT_TRUE(same_bits(theirs[i].detach(), test.model.parameters[i].tensor.detach()))
          << test.model.parameters[i].name << " at step " << step;
    }
  }
};

TEST(Sgd, HasTheBitsOfTorch) {
  for (const bool nesterov : {false, true}) {
    Pair pair;
    torch::optim::SGD torch_sgd(
        pair.theirs,
        torch::optim::SGDOptions(0.03).momentum(0.9).weight_decay(0.01).nesterov(nesterov));
    const auto ours = make_sgd({.momentum = 0.9, .weight_decay = 0.01, .nesterov = nesterov});
    for (int step = 0; step < 10; ++step) {
      pair.fill_gradients(step);
      torch_sgd.step();
      apply(*ours, *pair.store, *pair.gradients, kAll, at(0.03));
      pair.expect_equal(step);
    }
  }
}

TEST(Adamw, IsTorchsButForTheLastPlaceOfSquareRoots) {
  Pair pair;
  torch::optim::AdamW torch_adamw(pair.theirs, torch::optim::AdamWOptions(0.01).weight_decay(0.02));
  const auto ours = make_adamw({.weight_decay = 0.02});
  for (int step = 0; step < 10; ++step) {
    pair.fill_gradients(step);
    torch_adamw.step();
    apply(*ours, *pair.store, *pair.gradients, kAll, at(0.01));
  }
  for (std::size_t i = 0; i < pair.theirs.size(); ++i) {
    const auto mine = pair.test.model.parameters[i].tensor.detach();
    EXPECT_LT((pair.theirs[i].detach() - mine).abs().max().item<double>(), 1e-7);
  }
}

TEST(Apply, LeavesParametersWithoutAGradientAsTheyAre) {
  Pair pair;
  pair.fill_gradients(0);
  const auto before = pair.test.model.parameters[0].tensor.detach().clone();
  const auto optimizer = make_adamw({.weight_decay = 0.1});
  apply(
      *optimizer, *pair.store, *pair.gradients,
      [&](const std::string& name) { return name != pair.test.model.parameters[0].name; }, at(0.1));
  EXPECT_TRUE(same_bits(before, pair.test.model.parameters[0].tensor.detach()));
  EXPECT_EQ(optimizer->state().count(pair.test.model.parameters[0].name), 0U);
}

/// Ten steps of an optimizer over a store, beside its kernel on each parameter alone.
template <typename Kernel>
void expect_kernel_on_each(const std::unique_ptr<Optimizer>& optimizer, const Kernel& kernel) {
  Pair pair;
  std::vector<at::Tensor> m, v;
  for (const at::Tensor& value : pair.theirs) {
    m.push_back(torch::zeros_like(value));
    v.push_back(torch::zeros_like(value));
  }
  const at::NoGradGuard no_grad;
  for (int step = 0; step < 10; ++step) {
    pair.fill_gradients(step);
    for (std::size_t i = 0; i < pair.theirs.size(); ++i) {
      kernel(step + 1, pair.theirs[i], m[i].data_ptr<float>(), v[i].data_ptr<float>());
    }
    apply(*optimizer, *pair.store, *pair.gradients, kAll, at(0.05));
    pair.expect_equal(step);
  }
}

TEST(Lamb, IsItsKernelWithoutDecayOfVectors) {
  expect_kernel_on_each(make_lamb({.weight_decay = 0.02}), [](int step, const at::Tensor& p,
                                                              float* m, float* v) {
    kernels::lamb({.learning_rate = 0.05, .weight_decay = p.dim() < 2 ? 0 : 0.02}, step,
                  p.grad().const_data_ptr<float>(), m, v, p.mutable_data_ptr<float>(), p.numel());
  });
}

TEST(Lars, IsItsKernelThatLeavesVectorsAlone) {
  expect_kernel_on_each(make_lars({.momentum = 0.8, .weight_decay = 0.02}),
                        [](int, const at::Tensor& p, float* m, float*) {
                          kernels::lars({.learning_rate = 0.05,
                                         .momentum = 0.8,
                                         .weight_decay = p.dim() < 2 ? 0 : 0.02,
                                         .adapts = p.dim() > 1},
                                        p.grad().const_data_ptr<float>(), m,
                                        p.mutable_data_ptr<float>(), p.numel());
                        });
}

TEST(Novograd, IsItsKernelWithOneMomentForEachParameter) {
  std::map<const void*, double> moments;
  expect_kernel_on_each(
      make_novograd({.weight_decay = 0.02}), [&](int step, const at::Tensor& p, float* m, float*) {
        kernels::novograd({.learning_rate = 0.05, .weight_decay = p.dim() < 2 ? 0 : 0.02}, step,
                          p.grad().const_data_ptr<float>(), moments[p.data_ptr()], m,
                          p.mutable_data_ptr<float>(), p.numel());
      });
}

TEST(Adafactor, IsItsKernelOnTheMatrixOfEachParameter) {
  std::map<const void*, std::pair<std::vector<float>, std::vector<float>>> factors;
  expect_kernel_on_each(make_adafactor({.beta1 = 0.9, .weight_decay = 0.02}),
                        [&](int step, const at::Tensor& p, float* m, float* v) {
                          const kernels::AdafactorOptions options{
                              .learning_rate = 0.05, .beta1 = 0.9, .weight_decay = 0.02};
                          auto* values = p.mutable_data_ptr<float>();
                          const auto* gradient = p.grad().const_data_ptr<float>();
                          if (p.dim() < 2) {
                            kernels::adafactor(options, step, gradient, v, m, values, p.numel());
                            return;
                          }
                          const std::int64_t rows = p.size(0), columns = p.numel() / rows;
                          auto& [row, column] = factors[values];
                          row.resize(rows);
                          column.resize(columns);
                          kernels::adafactor(options, step, {1, rows, columns}, gradient,
                                             row.data(), column.data(), m, values);
                        });
}

TEST(Optimizers, TakeStateBackAndRefuseAnothers) {
  Pair pair;
  pair.fill_gradients(0);
  const std::string name = pair.test.model.parameters[0].name;
  const auto novograd = make_novograd({});
  apply(*novograd, *pair.store, *pair.gradients, kAll, at(0.1));
  const FlatParameter parameter = flat_parameter(*pair.store, name);
  const auto other = make_novograd({});
  other->restore(parameter, novograd->state().at(name));
  EXPECT_EQ(other->state().at(name).at("step").item<std::int64_t>(), 1);
  EXPECT_THROW(make_lamb({})->restore(parameter, novograd->state().at(name)), Error);
}

TEST(Average, MovesFromTheFirstValueTowardsEachUpdate) {
  for (const bool has_momentum : {false, true}) {
    Pair pair;
    const auto ours = make_sgd({.momentum = has_momentum ? 0.9 : 0.0});
    ours->set_average(0.75);
    const std::string name = pair.test.model.parameters[0].name;
    at::Tensor expected = pair.store->flat_value(name).clone();
    for (int step = 0; step < 3; ++step) {
      pair.fill_gradients(step);
      apply(*ours, *pair.store, *pair.gradients, kAll, at(0.03));
      expected = 0.75F * expected + 0.25F * pair.store->flat_value(name);
    }
    const auto& state = ours->state().at(name);
    EXPECT_TRUE(torch::allclose(state.at(Optimizer::kAverage), expected, 1e-6, 1e-8));
    EXPECT_EQ(state.size(), has_momentum ? 2U : 1U);
  }
}

TEST(Optimizers, OfF32RefuseF64ByName) {
  models::TestModel test = models::make("mlp");
  for (NamedTensor& item : test.model.parameters) {
    item.tensor.set_data(item.tensor.to(torch::kDouble));
  }
  const auto make_batch = [make = test.make_batch](std::int64_t size, std::uint64_t seed) {
    const Batch batch = make(size, seed);
    Batch result = batch;
    for (const auto& [name, tensor] : batch.tensors()) {
      if (tensor.is_floating_point()) result.set(name, tensor.to(torch::kDouble));
    }
    return result;
  };
  const auto recording = record::record(test.model, make_batch, graph::Mode::kTrain);
  const auto plan = layout::make_manual_plan(recording.graph, graph::graph_sha256(recording.graph),
                                             {}, {4, 4, 1});
  const ParameterStore store(layout::make_parameter_map(recording.graph, plan), recording.graph,
                             recording.tensors, {});
  check_parameters(*make_adamw({}), store);
  check_parameters(*make_sgd({}), store);
  try {
    check_parameters(*make_lamb({}), store);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("'" + store.names().front() + "' is f64; take adamw or sgd"),
              std::string::npos);
  }
}

TEST(Clip, ScalesToTheLargestNorm) {
  Pair pair;
  pair.fill_gradients(1);
  double expected = 0;
  for (const auto& tensor : pair.theirs) {
    expected += tensor.grad().to(torch::kDouble).square().sum().item<double>();
  }
  const auto norm = [&] { return global_norm(square_norms(*pair.store, *pair.gradients, kAll)); };
  EXPECT_NEAR(norm(), std::sqrt(expected), 1e-9);
  clip(*pair.gradients, norm(), 0.5);
  EXPECT_NEAR(norm(), 0.5, 1e-5);
  const double below = norm();
  clip(*pair.gradients, below, 2.0);
  EXPECT_EQ(norm(), below);
  EXPECT_THROW(clip(*pair.gradients, below, 0), Error);
  clip(*pair.gradients, std::numeric_limits<double>::quiet_NaN(), 2.0);
  for (const at::Tensor& flat : pair.gradients->all()) {
    EXPECT_TRUE(!flat.defined() || flat.isnan().all().item<bool>());
  }
}

}  // namespace
}  // namespace trireme::parameters
