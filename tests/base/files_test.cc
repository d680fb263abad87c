#include "trireme/base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "trireme/base/error.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// A folder of its own for each test, removed afterwards.
class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("trireme_files_" + std::to_string(::getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::size_t num_entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

template <typename Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::kCancelled, "nothing was thrown");
}

TEST_F(Files, ReadsWhatWasWritten) {
  for (std::size_t size : {0, 1, 4096, 100'001}) {
    std::string content(size, '\0');
    for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 31);
    write_file_atomically(folder_ / "x", content);
    EXPECT_EQ(read_file(folder_ / "x"), content);
    EXPECT_EQ(read_file_bytes(folder_ / "x").size(), size);
  }
  EXPECT_EQ(num_entries(), 1U) << "a temporary file was left";
}

TEST_F(Files, ReplacesALinkAndNotItsTarget) {
  write_file_atomically(folder_ / "target", std::string_view("old"));
  fs::create_symlink("target", folder_ / "link");
  write_file_atomically(folder_ / "link", std::string_view("new"));
  EXPECT_EQ(read_file(folder_ / "target"), "old");
  EXPECT_EQ(read_file(folder_ / "link"), "new");
}

TEST_F(Files, NobodySeesAPartOfAFile) {
  const std::string a(1 << 20, 'a'), b(1 << 20, 'b');
  write_file_atomically(folder_ / "x", a);
  std::jthread writer([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      write_file_atomically(folder_ / "x", b);
      write_file_atomically(folder_ / "x", a);
    }
  });
  for (int i = 0; i < 50; ++i) {
    const std::string seen = read_file(folder_ / "x");
    ASSERT_TRUE(seen == a || seen == b) << seen.size() << " bytes";
  }
}

TEST_F(Files, TellsWhyAFileCannotBeRead) {
  const Error missing = error_of([&] { read_file(folder_ / "nowhere"); });
  EXPECT_EQ(missing.kind(), ErrorKind::kIo);
  EXPECT_THAT(missing.message(), HasSubstr("nowhere"));
  EXPECT_THAT(missing.message(), HasSubstr("No such file"));

  const Error folder = error_of([&] { read_file(folder_); });
  EXPECT_EQ(folder.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(folder.message(), HasSubstr("is a folder"));

  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const Error pipe = error_of([&] { read_file(folder_ / "pipe"); });
  EXPECT_EQ(pipe.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(pipe.message(), HasSubstr("not a regular file"));
}

TEST_F(Files, TellsWhyAFileCannotBeWritten) {
  const Error missing =
      error_of([&] { write_file_atomically(folder_ / "a" / "b", std::string_view("x")); });
  EXPECT_EQ(missing.kind(), ErrorKind::kIo);
  EXPECT_THAT(missing.message(), HasSubstr("No such file"));

  fs::create_directory(folder_ / "taken");
  const Error taken =
      error_of([&] { write_file_atomically(folder_ / "taken", std::string_view("x")); });
  EXPECT_EQ(taken.kind(), ErrorKind::kIo);
  EXPECT_EQ(num_entries(), 1U) << "a temporary file was left";
}

TEST_F(Files, AFullDiskIsAResourceError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  // A file size limit is the full disk that a test can have without rights: EFBIG is plain I/O, so
  // the kind is tested where the system itself says ENOSPC.
  std::ofstream full("/dev/full");
  full << std::string(1 << 16, 'x') << std::flush;
  EXPECT_EQ(errno, ENOSPC);
}

}  // namespace
}  // namespace trireme
