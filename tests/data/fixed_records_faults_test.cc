// Records of one size where the system fails: reads, io_uring, files; and in children by fork.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <memory>
#include <thread>

#include "tests/data/child_process.h"
#include "tests/data/click_files.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class FixedRecordsFaults : public ClickFiles {
 protected:
  static std::string ids_of(const Source& source, const std::vector<std::int64_t>& indices) {
    std::string text;
    for (const std::int64_t index : indices) text += std::to_string(click_at(source, index)) + " ";
    return text;
  }
};

/// As in containers, whose filter of system calls knows no io_uring.
TEST_F(FixedRecordsFaults, WithoutIoUringReadsGoThroughTheCacheAndSaySo) {
  const auto paths = files();
  for (const int code : {EPERM, ENOSYS}) {
    const std::string text = in_child([&] {
      forbid(SYS_io_uring_setup, code);
      const FixedRecords records(paths, options());
      records.will_read(std::vector<Sample>{{4321}, {17}});
      return records.reading() + " " + std::to_string(click_at(records, 4321));
    });
    EXPECT_EQ(
        text,
        std::string("through the system's cache of files, since io_uring is not to be had here: ") +
            std::strerror(code) + " 4321");
  }
}

TEST_F(FixedRecordsFaults, AReadThatFailsNamesFileAndRecord) {
  const auto paths = files();
  for (const FileAccess access : {FileAccess::kDirect, FileAccess::kBuffered}) {
    const std::string text = in_child([&] {
      const FixedRecords records(paths, options(access));
      forbid(SYS_pread64, EIO);
      return std::to_string(click_at(records, 1002));
    });
    EXPECT_THAT(text, AllOf(HasSubstr("cannot read record 1 of '"), HasSubstr("2.bin'"),
                            HasSubstr(std::strerror(EIO))));
  }
}

/// The kernel shows some of its own data as files, which have no O_DIRECT.
TEST_F(FixedRecordsFaults, WithoutDirectReadsTheyGoThroughTheCacheAndSaySo) {
  const fs::path path = "/sys/kernel/btf/vmlinux";
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) GTEST_SKIP() << "no " << path << " here";
  const FixedRecords records({path}, {.fields = {{"bytes", Dtype::kU8, {64}}},
                                      .header_bytes = status.st_size % 64,
                                      .access = FileAccess::kDirect});
  const FixedRecords usual(files(), options());
  if (!is_direct(usual)) GTEST_SKIP() << usual.reading();
  EXPECT_THAT(records.reading(), AllOf(HasSubstr("through the system's cache of files, since '"),
                                       HasSubstr("cannot be read past the system's cache")));
  std::vector<std::byte> bytes(64), expected(64);
  const std::span<std::byte> to = bytes;
  records.read({100}, {&to, 1});
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::pread(file.number(), expected.data(), 64, status.st_size % 64 + 6400), 64);
  EXPECT_EQ(bytes, expected);
}

/// Told or not, past the cache or through it: who reads a record that is gone is told which.
TEST_F(FixedRecordsFaults, AFileThatGetsShorterIsNamedWithTheRecord) {
  for (const FileAccess access : {FileAccess::kDirect, FileAccess::kBuffered}) {
    const auto paths = files();
    const FixedRecords records(paths, options(access));
    EXPECT_EQ(click_at(records, 1001), 1001);
    fs::resize_file(paths[2], 12 * 100 + 5);
    EXPECT_EQ(click_at(records, 1100), 1100) << "what is there is read";
    for (const std::int64_t index : {1101, 5000}) {
      for (const bool is_told : {false, true}) {
        if (is_told) records.will_read(std::vector<Sample>{{index}, {7}});
        const Error error = error_of([&] { click_at(records, index); });
        EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
        EXPECT_THAT(error.message(),
                    AllOf(HasSubstr("record " + std::to_string(index - 1001) + " of '"),
                          HasSubstr("2.bin'"), HasSubstr("has got shorter")));
        EXPECT_EQ(click_at(records, 7), 7);
      }
    }
  }
}

/// In a process that may not read otherwise, what was told still comes: read ahead, or not at all.
TEST_F(FixedRecordsFaults, WhatWasToldIsNotReadOnceMore) {
  const auto paths = files();
  const std::string text = in_child([&] {
    const FixedRecords records(paths, options());
    if (!is_direct(records)) return records.reading();
    records.will_read(std::vector<Sample>{{4321}, {17}, {1000}});
    forbid(SYS_pread64, EIO);
    return ids_of(records, {17, 4321, 1000});
  });
  if (text.starts_with("through")) GTEST_SKIP() << text;
  EXPECT_EQ(text, "17 4321 1000 ");
}

/// As a filter of system calls that knows half of io_uring, or memory that is short: once it fails, records are read one by one.
TEST_F(FixedRecordsFaults, WhereIoUringFailsLaterRecordsAreReadOneByOne) {
  const auto paths = files();
  for (const bool is_told_before : {false, true}) {
    for (const int code : {ENOMEM, EPERM}) {
      const std::string text = in_child([&] {
        const FixedRecords records(paths, options());
        if (!is_direct(records)) return records.reading();
        const std::vector<Sample> some = {{4321}, {17}, {1000}}, more = {{5}, {3000}};
        if (is_told_before) records.will_read(some);
        forbid(SYS_io_uring_enter, code);
        if (!is_told_before) records.will_read(some);
        std::string ids = ids_of(records, {17, 4321, 1000});
        records.will_read(more);
        ids += ids_of(records, {3000, 5});
        records.will_read(more);
        return ids + records.reading();
      });
      if (text.starts_with("through")) GTEST_SKIP() << text;
      EXPECT_THAT(text, AllOf(StartsWith("17 4321 1000 3000 5 past"),
                              HasSubstr("; one by one from now on, since "),
                              HasSubstr(std::strerror(code))));
    }
  }
}

TEST_F(FixedRecordsFaults, WhereIoUringAndReadsFailFileAndRecordAreNamed) {
  const auto paths = files();
  const std::string text = in_child([&] {
    const FixedRecords records(paths, options());
    forbid(SYS_io_uring_enter, ENOMEM);
    forbid(SYS_pread64, EIO);
    records.will_read(std::vector<Sample>{{1002}});
    return ids_of(records, {1002});
  });
  EXPECT_THAT(text, AllOf(HasSubstr("cannot read record 1 of '"), HasSubstr("2.bin'"),
                          HasSubstr(std::strerror(EIO))));
}

/// The parent's requests stay the parent's.
TEST_F(FixedRecordsFaults, AChildReadsItsParentsRecordsByItself) {
  const auto paths = files();
  for (const FileAccess access : {FileAccess::kDirect, FileAccess::kBuffered}) {
    auto records = std::make_unique<const FixedRecords>(paths, options(access));
    std::vector<Sample> told;
    for (std::int64_t i = 0; i < 500; ++i) told.push_back({i * 10});
    records->will_read(told);
    const std::string text = in_child([&] {
      records->will_read(std::vector<Sample>{{70}, {71}});
      std::string ids = ids_of(*records, {4990, 70, 71, 1234}) + records->reading();
      records.reset();
      return ids;
    });
    EXPECT_THAT(text, StartsWith("4990 70 71 1234 "));
    if (is_direct(*records)) {
      EXPECT_THAT(text, HasSubstr("since a child by fork has no part"));
      EXPECT_THAT(records->reading(), Not(HasSubstr("one by one")));
    }
    for (const Sample& sample : told) ASSERT_EQ(click_at(*records, sample.index), sample.index);
  }
}

/// Whatever the parent's threads are at, in more files than stay open.
TEST_F(FixedRecordsFaults, AChildDoesNotWaitForThreadsOfItsParent) {
  std::vector<fs::path> paths;
  for (int file = 0; file < 300; ++file) {
    paths.push_back(write(std::to_string(file) + ".bin", clicks(2 * file, 2 * file + 2)));
  }
  auto records = std::make_unique<const FixedRecords>(paths, options());
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&records = *records, t](const std::stop_token& stop) {
      for (std::int64_t i = t; !stop.stop_requested(); i += 3) {
        records.will_read(std::vector<Sample>{{i * 7 % 600}, {i * 11 % 600}, {i * 13 % 600}});
        EXPECT_EQ(click_at(records, i * 11 % 600), i * 11 % 600);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    const std::string text = in_child([&] {
      std::string ids = ids_of(*records, {599, 0, 300});
      records.reset();
      return ids;
    });
    ASSERT_EQ(text, "599 0 300 ");
  }
}

}  // namespace
}  // namespace trireme::data
