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

}  // namespace
}  // namespace trireme::train
