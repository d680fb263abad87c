#include "trireme/base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "tests/base/error_of.h"
#include "tests/base/small_disk.h"
#include "tests/base/test_folder.h"
#include "trireme/error.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using testing::HasSubstr;

class Files : public test::TestFolder {
 protected:
  std::size_t num_entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }
};

TEST_F(Files, ReadsWhatWasWritten) {
  for (std::size_t size : {0, 1, 4096, 100'001}) {
    std::string content(size, '\0');
    for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 31);
    write_file_atomically(folder / "x", content);
    EXPECT_EQ(read_file(folder / "x"), content);
    EXPECT_EQ(read_file_bytes(folder / "x").size(), size);
  }
  EXPECT_EQ(num_entries(), 1U) << "a temporary file was left";
}

TEST_F(Files, WritesWhatALinkNamesAndKeepsTheLink) {
  fs::create_directory(folder / "elsewhere");
  write_file_atomically(folder / "elsewhere" / "target", std::string_view("old"));
  fs::create_symlink("elsewhere/target", folder / "inner");
  fs::create_symlink("inner", folder / "link");
  fs::create_symlink("elsewhere/later", folder / "dangling");
  for (const char* name : {"link", "dangling"}) {
    check_writable(folder / name);
    write_file_atomically(folder / name, std::string_view("new"));
    EXPECT_TRUE(fs::is_symlink(folder / name));
    EXPECT_EQ(read_file(folder / name), "new");
  }
  EXPECT_EQ(read_file(folder / "elsewhere" / "target"), "new");
  EXPECT_EQ(read_file(folder / "elsewhere" / "later"), "new");
  fs::create_symlink("circle", folder / "circle");
  EXPECT_EQ(
      error_of([&] { write_file_atomically(folder / "circle", std::string_view("x")); }).kind(),
      ErrorKind::kIo);
}

TEST_F(Files, ADeviceOrPipeIsNeverReplaced) {
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/null", folder / "link");
  for (const fs::path& path : {folder / "pipe", folder / "link", fs::path("/dev/null"), folder}) {
    for (const bool is_written : {false, true}) {
      const Error error = error_of([&] {
        is_written ? write_file_atomically(path, std::string_view("x")) : check_writable(path);
      });
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << path;
      EXPECT_THAT(error.message(), HasSubstr("name a file"));
    }
  }
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(num_entries(), 2U) << "a temporary file was left";
}

TEST_F(Files, NobodySeesAPartOfAFile) {
  const std::string a(1 << 20, 'a'), b(1 << 20, 'b');
  write_file_atomically(folder / "x", a);
  std::jthread writer([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      write_file_atomically(folder / "x", b);
      write_file_atomically(folder / "x", a);
    }
  });
  for (int i = 0; i < 50; ++i) {
    const std::string seen = read_file(folder / "x");
    ASSERT_TRUE(seen == a || seen == b) << seen.size() << " bytes";
  }
}

TEST_F(Files, TellsWhyAFileCannotBeRead) {
  const Error missing = error_of([&] { read_file(folder / "nowhere"); });
  EXPECT_EQ(missing.kind(), ErrorKind::kIo);
  EXPECT_THAT(missing.message(), HasSubstr("nowhere"));
  EXPECT_THAT(missing.message(), HasSubstr("No such file"));

  const Error is_folder = error_of([&] { read_file(folder); });
  EXPECT_EQ(is_folder.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(is_folder.message(), HasSubstr("is a folder"));

  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const Error pipe = error_of([&] { read_file(folder / "pipe"); });
  EXPECT_EQ(pipe.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(pipe.message(), HasSubstr("not a regular file"));
}

TEST_F(Files, TellsWhyAFileCannotBeWritten) {
  const Error missing =
      error_of([&] { write_file_atomically(folder / "a" / "b", std::string_view("x")); });
  EXPECT_EQ(missing.kind(), ErrorKind::kIo);
  EXPECT_THAT(missing.message(), HasSubstr("No such file"));

  fs::create_directory(folder / "taken");
  const Error taken =
      error_of([&] { write_file_atomically(folder / "taken", std::string_view("x")); });
  EXPECT_EQ(taken.kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(num_entries(), 1U) << "a temporary file was left";
}

TEST_F(Files, WhatCannotBeWrittenIsKnownBefore) {
  EXPECT_NO_THROW(check_writable(folder / "new"));
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
  EXPECT_NO_THROW(check_writable("in_the_current_folder"));
  const Error missing = error_of([&] { check_writable(folder / "missing" / "x"); });
  EXPECT_EQ(missing.kind(), ErrorKind::kIo);
}

TEST_F(Files, AFailedWriteLeavesTheOldFile) {
  write_file_atomically(folder / "x", std::string_view("old"));
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 4096, .rlim_max = old_limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Error error =
      error_of([&] { write_file_atomically(folder / "x", std::string(10'000, 'n')); });
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
  EXPECT_THAT(error.message(), HasSubstr("cannot write"));
  EXPECT_EQ(read_file(folder / "x"), "old");
  EXPECT_EQ(num_entries(), 1U) << "a temporary file was left";
}

TEST_F(Files, MakesFolders) {
  make_folder(folder / "a" / "b");
  make_folder(folder / "a" / "b" / "");
  EXPECT_TRUE(fs::is_directory(folder / "a" / "b"));
  write_file_atomically(folder / "x", std::string_view("file"));
  for (const fs::path& path : {folder / "x", folder / "x" / "y"}) {
    const Error error = error_of([&] { make_folder(path); });
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_THAT(error.message(), HasSubstr("Not a directory"));
  }
}

TEST_F(Files, AFullDiskIsAResourceError) {
  const test::SmallDisk disk(folder, "64k");
  if (!disk.is_there()) GTEST_SKIP() << "mounting a small disk needs root";
  const Error error =
      error_of([&] { write_file_atomically(folder / "x", std::string(1 << 20, 'x')); });
  EXPECT_EQ(num_entries(), 0U) << "a temporary file was left";
  EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
  EXPECT_THAT(error.message(), HasSubstr("No space left"));
}

}  // namespace
}  // namespace trireme
