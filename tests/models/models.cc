#include "tests/models/models.h"

#include <ATen/CPUGeneratorImpl.h>

#include <map>

#include "tests/models/convolutions.h"
#include "tests/models/operators.h"
#include "tests/models/sequences.h"
#include "trireme/error.h"
#include "trireme/model.h"

namespace trireme::models {
namespace {

namespace nn = torch::nn;

at::Generator generator(std::uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed + 17);
}

struct Mlp : nn::Module {
  nn::Linear first{nullptr}, second{nullptr}, head{nullptr};

  Mlp() {
    first = register_module("first", nn::Linear(12, 24));
    second = register_module("second", nn::Linear(24, 24));
    head = register_module("head", nn::Linear(24, 5));
  }

  torch::Tensor forward(const Batch& batch) {
    auto x = torch::relu(first(batch["x"]));
    x = torch::tanh(second(x)) + x;
    return nn::functional::cross_entropy(head(x), batch["label"]);
  }
};

/// Matrices of several norm blocks, whose rows divide them or not, and one whose memory has columns outermost.
struct Wide : nn::Module {
  nn::Linear first{nullptr}, second{nullptr}, third{nullptr}, head{nullptr};

  Wide() {
    first = register_module("first", nn::Linear(12, 256));
    second = register_module("second", nn::Linear(256, 192));
    third = register_module("third", nn::Linear(192, 100));
    head = register_module("head", nn::Linear(100, 400));
    const torch::NoGradGuard no_grad;
    third->weight.set_data(third->weight.detach().t().contiguous().t());
  }

  torch::Tensor forward(const Batch& batch) {
    const auto x = torch::tanh(second(torch::relu(first(batch["x"]))));
    return nn::functional::cross_entropy(head(torch::tanh(third(x))), batch["label"]);
  }
};

/// Two heads on a trunk: a mean over samples, a sum over the marked elements, and a count.
struct TwoLosses : nn::Module {
  nn::Linear trunk{nullptr}, classes{nullptr}, numbers{nullptr};

  TwoLosses() {
    trunk = register_module("trunk", nn::Linear(12, 20));
    classes = register_module("classes", nn::Linear(20, 5));
    numbers = register_module("numbers", nn::Linear(20, 3));
  }

  Losses forward(const Batch& batch) {
    const auto x = torch::gelu(trunk(batch["x"]));
    const auto logits = classes(x);
    const auto error = (numbers(x) - batch["target"]).square() * batch["mask"];
    auto regression = sum_loss(error.sum(), batch["mask"].sum(), "regression");
    regression.coefficient = 0.25;
    const auto hits = (logits.argmax(1) == batch["label"]).to(torch::kFloat).mean();
    return {mean_loss(nn::functional::cross_entropy(logits, batch["label"]), "class"), regression,
            metric(mean_loss(hits), "accuracy")};
  }
};

Batch features(std::int64_t size, std::uint64_t seed) {
  auto random = generator(seed);
  Batch batch;
  batch.set("x", torch::randn({size, 12}, random));
  batch.set("label", torch::randint(0, 5, {size}, random, torch::kLong));
  return batch;
}

Batch features_and_targets(std::int64_t size, std::uint64_t seed) {
  auto random = generator(seed + 1);
  Batch batch = features(size, seed);
  batch.set("target", torch::randn({size, 3}, random));
  batch.set("mask", (torch::rand({size, 3}, random) < 0.7).to(torch::kFloat));
  return batch;
}

Batch images(std::int64_t size, std::uint64_t seed) {
  auto random = generator(seed);
  Batch batch;
  batch.set("image", torch::randn({size, 3, 16, 16}, random));
  batch.set("label", torch::randint(0, 5, {size}, random, torch::kLong));
  batch.set("mask", torch::randint(0, 2, {size, 16, 16}, random, torch::kLong));
  return batch;
}

Batch spoken_images(std::int64_t size, std::uint64_t seed) {
  auto random = generator(seed);
  Batch batch;
  batch.set("image", torch::randn({size, 3, 8, 8}, random));
  batch.set("box", torch::rand({size, 4}, random) * 3 + torch::tensor({0.F, 0.F, 4.F, 4.F}));
  batch.set("labels", torch::randint(1, 6, {size, 4}, random, torch::kLong));
  batch.set("num_frames", torch::randint(5, 10, {size}, random, torch::kLong));
  batch.set("num_labels", torch::randint(0, 5, {size}, random, torch::kLong));
  return batch;
}

Batch tokens(std::int64_t size, std::uint64_t seed) {
  auto random = generator(seed);
  Batch batch;
  batch.set("tokens", torch::randint(0, 30, {size, 7}, random, torch::kLong));
  batch.set("tags", torch::randint(0, 4, {size, 7}, random, torch::kLong));
  return batch;
}

template <typename Module>
Model make_as() {
  torch::manual_seed(1);
  return make_model(std::make_shared<Module>());
}

const std::map<std::string, TestModel (*)()>& makers() {
  static const std::map<std::string, TestModel (*)()> all = {
      {"mlp", [] { return TestModel{make_as<Mlp>(), features}; }},
      {"resnet", [] { return TestModel{make_as<ResNet>(), images}; }},
      {"unet", [] { return TestModel{make_as<UNet>(), images}; }},
      {"transformer", [] { return TestModel{make_as<Transformer>(), tokens, false}; }},
      {"tagger", [] { return TestModel{make_as<Tagger>(), tokens}; }},
      {"operators", [] { return TestModel{make_as<Operators>(), spoken_images}; }},
      {"two_losses", [] { return TestModel{make_as<TwoLosses>(), features_and_targets}; }},
      {"wide", [] { return TestModel{make_as<Wide>(), features}; }},
  };
  return all;
}

}  // namespace

const std::vector<std::string>& names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> result;
    for (const auto& [name, make] : makers()) {
      if (name != "wide") result.push_back(name);
    }
    return result;
  }();
  return all;
}

TestModel make(const std::string& name) {
  const auto found = makers().find(name);
  if (found == makers().end()) throw Error(ErrorKind::kInvalidArgument, "no test model " + name);
  return found->second();
}

}  // namespace trireme::models
