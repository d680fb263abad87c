#include "trireme/base/scratch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <vector>

#include "tests/base/small_disk.h"
#include "trireme/error.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;

std::filesystem::path empty_folder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(ScratchFile, HoldsWhatWasAppendedAndHasNoName) {
  const std::filesystem::path folder = empty_folder("scratch_file");
  ScratchFile file(folder);
  const std::vector first(5000, std::byte{1}), second(3, std::byte{2});
  file.append(first);
  file.append(second);
  file.append({});
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  file.prefetch();
  std::vector<std::byte> found(3);
  file.read(4999, found);
  EXPECT_EQ(found, (std::vector{std::byte{1}, std::byte{2}, std::byte{2}}));
  EXPECT_THROW(file.read(5001, found), Error);
}

TEST(ScratchFile, SpaceIsWrittenAgain) {
  ScratchFile file(empty_folder("scratch_again"));
  file.append(std::vector(10, std::byte{1}));
  file.write(4, std::vector(2, std::byte{2}));
  file.write(9, std::vector(3, std::byte{3}));
  EXPECT_EQ(file.append(std::vector(1, std::byte{4})), 12U) << "behind all that was written";
  std::vector<std::byte> found(13);
  file.read(0, found);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const int expected = i == 12 ? 4 : i >= 9 ? 3 : i == 4 || i == 5 ? 2 : 1;
    EXPECT_EQ(found[i], std::byte(expected)) << i;
  }
}

TEST(ScratchFile, AFullDiskIsNamed) {
  const std::filesystem::path folder = empty_folder("scratch_full");
  const test::SmallDisk disk(folder, "64k");
  if (!disk.is_there()) GTEST_SKIP() << "mounting needs root";
  ScratchFile file(folder);
  try {
    file.append(std::vector<std::byte>(1 << 20));
    FAIL() << "1 MiB on 64 KiB";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
    EXPECT_THAT(error.message(), HasSubstr(folder.string()));
  }
}

TEST(ScratchFile, WhatComesAfterAFailureIsReadWhereItLies) {
  const std::filesystem::path folder = empty_folder("scratch_refilled");
  const test::SmallDisk disk(folder, "64k");
  if (!disk.is_there()) GTEST_SKIP() << "mounting needs root";
  ScratchFile file(folder);
  EXPECT_EQ(file.append(std::vector(1000, std::byte{1})), 0U);
  {
    ScratchFile other(folder);
    other.append(std::vector(40000, std::byte{2}));
    EXPECT_THROW(file.append(std::vector(40000, std::byte{3})), Error);
  }
  const std::vector last(5000, std::byte{4});
  const std::uint64_t offset = file.append(last);
  std::vector<std::byte> found(last.size());
  file.read(offset, found);
  EXPECT_EQ(found, last);
}

TEST(ScratchFile, AFolderThatIsNotThereIsNamed) {
  try {
    const ScratchFile file("/no/such/folder");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_THAT(error.message(), HasSubstr("/no/such/folder"));
  }
}

}  // namespace
}  // namespace trireme
