#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/error.h"

namespace trireme::data {

/// A folder of its own for each test, removed afterwards.
class FolderFiles : public testing::Test {
 protected:
  FolderFiles() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder =
        std::filesystem::temp_directory_path() / ("trireme_" + std::to_string(::getpid()) + "_" +
                                                  info->test_suite_name() + "_" + info->name());
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  ~FolderFiles() override { std::filesystem::remove_all(folder); }

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
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::kCancelled, "nothing was thrown"};
}

inline std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace trireme::data
