#include "trireme/engine/train/construct_workload.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "trireme/error.h"
#include "trireme/model.h"

namespace trireme::train {
namespace {

/// Two linear layers; `extra` puts a third in between, `reversed` makes them in the other order.
struct Net : torch::nn::Module {
  Net(bool extra, bool reversed) {
    torch::nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
    if (!reversed) a = torch::nn::Linear(4, 4);
    if (extra) c = torch::nn::Linear(4, 4);
    b = torch::nn::Linear(4, 4);
    if (reversed) a = torch::nn::Linear(4, 4);
    register_module("a", a);
    if (extra) register_module("c", c);
    register_module("b", b);
  }
};

MakeWorkload maker(bool extra, bool reversed) {
  return [=] {
    const auto net = std::make_shared<Net>(extra, reversed);
    return Workload{make_model(net, [](const Batch& batch) { return batch["x"].sum(); }),
                    tensor_source({{"x", torch::randn({8, 4})}}), nullptr};
  };
}

at::Tensor parameter(const Workload& workload, const std::string& name) {
  for (const NamedTensor& item : workload.model.parameters) {
    if (item.name == name) return item.tensor.detach();
  }
  return {};
}

TEST(Construct, WeightsDependOnSeedAndNameAlone) {
  const Workload plain = construct(maker(false, false), 3);
  for (const Workload& other :
       {construct(maker(true, false), 3), construct(maker(false, true), 3)}) {
    for (const char* name : {"a.weight", "a.bias", "b.weight", "b.bias"}) {
      EXPECT_TRUE(torch::equal(parameter(plain, name), parameter(other, name))) << name;
    }
  }
}

TEST(Construct, OtherSeedsAndNamesHaveOtherWeights) {
  const Workload one = construct(maker(false, false), 3), other = construct(maker(false, false), 4);
  EXPECT_FALSE(torch::equal(parameter(one, "a.weight"), parameter(other, "a.weight")));
  EXPECT_FALSE(torch::equal(parameter(one, "a.weight"), parameter(one, "b.weight")));
  EXPECT_LT(parameter(one, "a.weight").abs().max().item<float>(), 0.5001F);
}

TEST(Construct, RefusesAMakerThatDoesSomethingElseEachTime) {
  int calls = 0;
  const MakeWorkload growing = [&] {
    for (int i = 0; i < calls; ++i) torch::rand({1});
    ++calls;
    return maker(false, false)();
  };
  EXPECT_THROW(construct(growing, 0), Error);
}

/// Large enough to wait, but for what is no parameter, made by itself or of another.
struct Large : torch::nn::Module {
  Large() {
    a = register_module("a", torch::nn::Linear(256, 256));
    scaled = register_parameter("scaled", torch::randn({256, 256}) * 0.02);
    ones = register_parameter("ones", torch::ones({256, 256}));
    mask = register_buffer("mask", torch::rand({256, 256}));
    b = register_module("b", torch::nn::Linear(256, 256));
    const at::NoGradGuard no_grad;
    b->weight.normal_(0, 0.5);
  }
  torch::nn::Linear a{nullptr}, b{nullptr};
  at::Tensor scaled, ones, mask;
};

MakeWorkload large_maker() {
  return [] {
    const auto net = std::make_shared<Large>();
    return Workload{make_model(net, [](const Batch& batch) { return batch["x"].sum(); }),
                    tensor_source({{"x", torch::randn({256, 256})}}), nullptr};
  };
}

TEST(Construct, DeferredWeightsAreTheSame) {
  const Workload plain = construct(large_maker(), 3);
  const Workload deferred = construct(large_maker(), 3, /*defers=*/true);
  ASSERT_TRUE(deferred.model.fill);
  EXPECT_EQ(parameter(deferred, "a.weight").count_nonzero().item<std::int64_t>(), 0);
  for (std::size_t i = plain.model.parameters.size(); i-- > 0;) {  // in any order
    const NamedTensor& item = deferred.model.parameters[i];
    deferred.model.fill(item.tensor);
    EXPECT_TRUE(torch::equal(item.tensor, plain.model.parameters[i].tensor)) << item.name;
  }
  EXPECT_TRUE(torch::equal(deferred.model.buffers[0].tensor, plain.model.buffers[0].tensor));
  EXPECT_EQ(data::fingerprint(*deferred.training), data::fingerprint(*plain.training));
  EXPECT_FALSE(plain.model.fill);
}

}  // namespace
}  // namespace trireme::train
