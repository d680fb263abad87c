#include "trireme/base/file_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

#include "trireme/base/error.h"

namespace trireme {
namespace {

using namespace std::chrono_literals;

TEST(FileLock, HasOneHolder) {
  const auto path =
      std::filesystem::temp_directory_path() / ("trireme_lock_" + std::to_string(::getpid()));
  std::optional<FileLock> first(std::in_place, path, 0ms);
  int num_waits = 0;
  try {
    const FileLock second(path, 120ms, [&num_waits] { ++num_waits; });
    ADD_FAILURE() << "locked twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  }
  EXPECT_EQ(num_waits, 1);
  first.reset();
  const FileLock third(path, 0ms);
  std::filesystem::remove(path);
}

TEST(FileLock, NeedsItsFolder) { EXPECT_THROW(FileLock("/nowhere/lock", 0ms), Error); }

}  // namespace
}  // namespace trireme
