#include "trireme/session/initial_weights.h"

#include <gmock/gmock.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>

#include "tests/base/error_of.h"
#include "trireme/base/safetensors.h"

namespace trireme::session {
namespace {

using testing::HasSubstr;
using trireme::test::error_of;

/// A file of f32 ones, 2 x 3 or of another shape, by name.
struct WeightsFile {
  explicit WeightsFile(const std::map<std::string, std::vector<std::int64_t>>& shapes) {
    std::vector<safetensors::Tensor> tensors;
    for (const auto& [name, shape] : shapes) {
      const at::Tensor& ones = kept.emplace_back(torch::ones(shape));
      tensors.push_back({name, Dtype::kF32, shape,
                         std::as_bytes(std::span(ones.const_data_ptr<float>(),
                                                 static_cast<std::size_t>(ones.numel())))});
    }
    safetensors::write(path, tensors);
  }
  ~WeightsFile() { std::filesystem::remove(path); }

  std::string path = std::filesystem::temp_directory_path() /
                     ("trireme_initial_" + std::to_string(::getpid()) + ".safetensors");
  std::vector<at::Tensor> kept;
};

/// Its output layer is its embedding.
struct TiedModel {
  TiedModel() {
    model.parameters = {{"embed.weight", embed}, {"head.weight", embed}, {"head.bias", bias}};
  }
  at::Tensor embed = torch::zeros({2, 3}), bias = torch::zeros({2}, torch::kDouble);
  Model model;
};

TEST(InitialWeights, ATiedTensorStandsInTheFileOnce) {
  const WeightsFile file({{"embed.weight", {2, 3}}, {"head.bias", {2}}});
  const TiedModel tied;
  EXPECT_THAT(load_weights(tied.model, {.file = file.path}), HasSubstr("2 tensors from '"));
  EXPECT_TRUE(torch::equal(tied.embed, torch::ones({2, 3})));
  EXPECT_TRUE(torch::equal(tied.bias, torch::ones({2}, torch::kDouble)));
}

TEST(InitialWeights, WhatDoesNotFitIsNamed) {
  const auto refusal = [](const std::map<std::string, std::vector<std::int64_t>>& shapes) {
    const WeightsFile file(shapes);
    return error_of([&] { load_weights(TiedModel().model, {.file = file.path}); }).message();
  };
  EXPECT_THAT(refusal({{"embed.weight", {2, 3}}}), HasSubstr("'head.bias' is not in the file"));
  EXPECT_THAT(refusal({{"embed.weight", {3, 2}}, {"head.bias", {2}}}),
              HasSubstr("'embed.weight' has the shape [2, 3], that of the file [3, 2]"));
  EXPECT_THAT(refusal({{"embed.weight", {2, 3}}, {"head.bias", {2}}, {"pooler", {1}}}),
              HasSubstr("it has 'pooler', which is no tensor of the model"));
}

TEST(InitialWeights, NamesMayBeginOtherwiseAndHeadsBeOthers) {
  const WeightsFile file({{"bert.embed.weight", {2, 3}}, {"head.bias", {7}}, {"pooler", {1}}});
  const TiedModel tied;
  const std::string text =
      load_weights(tied.model, {.file = file.path, .renamed = {{"bert.", ""}}, .partial = true});
  EXPECT_THAT(text, HasSubstr("1 tensors from"));
  EXPECT_THAT(text, HasSubstr("as the model makes them: head.bias"));
  EXPECT_THAT(text, HasSubstr("not used: head.bias, pooler"));
  EXPECT_TRUE(torch::equal(tied.embed, torch::ones({2, 3})));
  EXPECT_TRUE(torch::equal(tied.bias, torch::zeros({2}, torch::kDouble)));
  const WeightsFile twice({{"a.embed.weight", {2, 3}}, {"b.embed.weight", {2, 3}}});
  EXPECT_THAT(error_of([&] {
                load_weights(
                    tied.model,
                    {.file = twice.path, .renamed = {{"a.", ""}, {"b.", ""}}, .partial = true});
              }).message(),
              HasSubstr("two of its tensors become 'embed.weight'"));
}

}  // namespace
}  // namespace trireme::session
