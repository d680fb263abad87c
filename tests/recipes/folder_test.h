#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace trireme::recipes {

/// A test with a folder of its own, gone at the end.
class FolderTest : public testing::Test {
 protected:
  explicit FolderTest(const std::string& name)
      : folder_(std::filesystem::temp_directory_path() /
                ("trireme_" + name + "_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~FolderTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  const std::filesystem::path folder_;
};

}  // namespace trireme::recipes
