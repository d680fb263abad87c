#pragma once

#include <string>
#include <vector>

#include "tests/base/error_of.h"
#include "tests/base/test_folder.h"

namespace trireme::data {

using test::error_of;
using FolderFiles = test::TestFolder;

inline std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace trireme::data
