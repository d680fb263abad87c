#include "trireme/base/file_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>

#include "trireme/error.h"

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

// A data loader's worker, say, that lives on after its parent was killed.
TEST(FileLock, AForkedChildDoesNotKeepIt) {
  const auto path =
      std::filesystem::temp_directory_path() / ("trireme_forked_" + std::to_string(::getpid()));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const FileLock lock(path, 0ms);
    const pid_t child = ::fork();
    if (child == 0) ::sleep(20);
    if (child != 0 && ::write(ends[1], &child, sizeof child) < 0) ::_exit(1);
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(parent, nullptr, 0), parent);
  pid_t child = 0;
  ASSERT_EQ(::read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  EXPECT_EQ(::kill(child, 0), 0);       // it lives
  EXPECT_NO_THROW(FileLock(path, 5s));  // it may not have come so far yet
  ::kill(child, SIGKILL);
  ::close(ends[0]);
  ::close(ends[1]);
  std::filesystem::remove(path);
}

TEST(FileLock, NeedsItsFolder) { EXPECT_THROW(FileLock("/nowhere/lock", 0ms), Error); }

}  // namespace
}  // namespace trireme
