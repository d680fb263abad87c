#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace trireme::checkpoint {

/// A folder of its own for each test, removed afterwards.
class OwnFolder : public testing::Test {
 protected:
  OwnFolder()
      : folder(std::filesystem::temp_directory_path() /
               ("trireme_checkpoint_" + std::to_string(::getpid()) + "_" +
                testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  ~OwnFolder() override { std::filesystem::remove_all(folder); }

  std::filesystem::path folder;
};

}  // namespace trireme::checkpoint
