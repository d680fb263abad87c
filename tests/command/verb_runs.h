#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "trireme/command_line.h"
#include "trireme/model.h"

namespace trireme {

struct Net : torch::nn::Module {
  torch::nn::Linear in{4, 8}, out{8, 2};
  Net() {
    register_module("in", in);
    register_module("out", out);
  }
  torch::Tensor forward(const Batch& batch) {
    const auto y = out(torch::dropout(torch::relu(in(batch["x"])), 0.1, is_training()));
    return torch::nn::functional::cross_entropy(y, batch["label"]);
  }
};

inline Workload make_net() {
  const auto x = torch::randn({40, 4});
  const auto source = tensor_source({{"x", x}, {"label", (x.sum(1) > 0).to(torch::kLong)}});
  return {make_model(std::make_shared<Net>()), source, source};
}

struct Answer {
  int code;
  std::string out;
  std::string err;
};

/// What `program WORDS..` answers.
inline Answer run(const MakeWorkload& make, std::vector<std::string> words) {
  words.insert(words.begin(), "program");
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = run_command_line(static_cast<int>(argv.size()), argv.data(), make);
  Answer answer{code, testing::internal::GetCapturedStdout(), ""};
  answer.err = testing::internal::GetCapturedStderr();
  return answer;
}

/// Gives each test a folder of its own.
class CommandLine : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("trireme-command-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

}  // namespace trireme
