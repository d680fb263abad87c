#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace trireme::test {

/// A folder of its own for each test, removed afterwards.
class TestFolder : public testing::Test {
 protected:
  TestFolder() {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  ~TestFolder() override { std::filesystem::remove_all(folder); }

  std::filesystem::path write(const std::string& name, std::string_view content) const {
    const std::filesystem::path file = folder / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }

  std::string path(const std::string& name) const { return (folder / name).string(); }

  const std::filesystem::path folder = own_path();

 private:
  static std::filesystem::path own_path() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = "trireme_" + std::to_string(::getpid()) + "_" + info->test_suite_name() +
                       "_" + info->name();
    for (char& letter : name) letter = letter == '/' ? '_' : letter;  // of parameterised tests
    return std::filesystem::temp_directory_path() / name;
  }
};

}  // namespace trireme::test
