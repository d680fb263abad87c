#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "trireme/error.h"
#include "trireme/session.h"

namespace trireme {

/// Two modules that make one model.
inline Workload make_two_modules() {
  const auto encoder = std::make_shared<torch::nn::SequentialImpl>(
      torch::nn::Linear(4, 8), torch::nn::ReLU(), torch::nn::Dropout(0.1));
  const auto head = std::make_shared<torch::nn::LinearImpl>(8, 2);
  auto model = make_model({{"encoder", encoder}, {"head", head}}, [=](const Batch& batch) {
    const auto y = head->forward(encoder->forward(batch["x"]));
    return torch::nn::functional::cross_entropy(y, batch["label"]);
  });
  const auto x = torch::randn({40, 4});
  const auto source = tensor_source({{"x", x}, {"label", (x.sum(1) > 0).to(torch::kLong)}});
  return {std::move(model), source, source};
}

template <typename Body>
std::string refusal(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("trireme-session-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static SessionOptions options(std::int64_t num_steps) {
    SessionOptions options{.num_steps = num_steps};
    options.planning.batch = {.global_batch = 8, .microbatch = 2, .lanes = 2};
    options.planning.stages = 1;
    options.planning.replicas = 1;
    return options;
  }

  /// Of a run in a folder: the ranks plan.
  SessionOptions kept(std::int64_t num_steps) const {
    SessionOptions result = options(num_steps);
    result.run = {.folder = path("run"), .resume = true, .checkpoint_every = 3};
    return result;
  }

  static std::string text_of(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  /// Bytes of the weights after an undisturbed training.
  std::string undisturbed(std::int64_t num_steps) {
    Session session(world_, make_two_modules, options(num_steps));
    session.run();
    session.save_weights(path("undisturbed"));
    return text_of(path("undisturbed"));
  }

  World world_;
  std::filesystem::path folder_;
};

}  // namespace trireme
