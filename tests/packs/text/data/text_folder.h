#pragma once

#include <filesystem>
#include <string>

#include "tests/base/error_of.h"
#include "tests/base/test_folder.h"

namespace trireme::text {

using test::error_of;
using TextFolder = test::TestFolder;

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
