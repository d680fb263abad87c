#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "trireme/error.h"

namespace trireme::text {

/// A folder of its own for each test, removed afterwards.
class TextFolder : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder = std::filesystem::temp_directory_path() /
             ("trireme_text_" + std::to_string(::getpid()) + "_" + info->test_suite_name() + "_" +
              info->name());
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::filesystem::path write(const std::string& name, std::string_view content) const {
    const std::filesystem::path path = folder / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  std::filesystem::path folder;
};

/// What `action` throws; of kind kCancelled where it throws nothing.
template <typename Action>
Error error_from(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::kCancelled, "nothing was thrown"};
}

/// A folder of the public data beside this repository; empty where it is not there.
inline std::filesystem::path public_data(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path("../shared/data") / name;
  return std::filesystem::exists(path) ? path : std::filesystem::path();
}

/// Source code of so many functions, each with other names and indentation.
inline std::string sample_code(int seed, int num_functions) {
  std::string code = "\"\"\"Module " + std::to_string(seed) + ".\"\"\"\n\nimport os\n\n";
  const char* words[] = {"value", "total", "index", "count", "result", "buffer", "name", "path"};
  for (int i = 0; i < num_functions; ++i) {
    const std::string a = words[(seed * 7 + i) % 8], b = words[(seed + i * 3) % 8];
    code += "def compute_" + a + "_" + std::to_string(seed * 31 + i) + "(" + a + ", " + b +
            "):\n    if " + a + " > " + std::to_string(i) + ":\n        return " + a + " + " + b +
            "\n    for item in range(" + b + "):\n\tprint(item,  \"" + a +
            "\")\n    return None\n\n";
  }
  return code;
}

}  // namespace trireme::text
