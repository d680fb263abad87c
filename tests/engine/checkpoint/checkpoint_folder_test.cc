#include "trireme/engine/checkpoint/checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "tests/base/small_disk.h"
#include "tests/base/test_folder.h"
#include "trireme/base/files.h"
#include "trireme/engine/checkpoint/checkpoint_index.h"
#include "trireme/error.h"

namespace trireme::checkpoint {
namespace {

namespace fs = std::filesystem;

class Folders : public test::TestFolder {
 protected:
  void publish(std::int64_t step, std::string_view content) {
    const fs::path partial = checkpoints.begin(step);
    write_file_atomically(partial / "x", content);
    checkpoints.publish(partial, step);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : fs::directory_iterator(checkpoints.root())) {
      result.push_back(entry.path().filename().string());
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  Folder checkpoints{folder / "deep" / "checkpoints"};
};

TEST_F(Folders, NothingIsThereBefore) {
  EXPECT_EQ(checkpoints.newest(), std::nullopt);
  EXPECT_TRUE(checkpoints.steps().empty());
}

TEST_F(Folders, PublishesAndKeepsTheLast) {
  for (const int step : {2, 10, 9, 100}) publish(step, "x");
  EXPECT_EQ(checkpoints.steps(), (std::vector<std::int64_t>{2, 9, 10, 100}));
  EXPECT_EQ(read_file(checkpoints.root() / "latest"), "step-100\n");
  checkpoints.keep_last(2);
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-10", "step-100"}));
  checkpoints.keep_last(5);
  EXPECT_EQ(checkpoints.steps().size(), 2U);
  EXPECT_THROW(checkpoints.keep_last(0), Error);
  publish(101, "x");
  checkpoints.keep_last(1, {10, 5});
  EXPECT_EQ(checkpoints.steps(), (std::vector<std::int64_t>{10, 101}));
}

// A run that went on after a NaN rotated away all that it could be resumed from.
TEST_F(Folders, TheLastFiniteOneIsNeverRotatedAway) {
  for (const int step : {1, 2, 3, 4, 5}) {
    const fs::path partial = checkpoints.begin(step);
    save({.step = step, .contents = {.not_finite = step > 2 ? "parameters/w" : ""}},
         partial / "index.json");
    checkpoints.publish(partial, step);
  }
  checkpoints.keep_last(2);
  EXPECT_EQ(checkpoints.steps(), (std::vector<std::int64_t>{2, 4, 5}));
  checkpoints.keep_last(1);
  EXPECT_EQ(checkpoints.steps(), (std::vector<std::int64_t>{2, 5}));
}

TEST_F(Folders, ReplacesNothing) {
  publish(3, "old");
  EXPECT_THROW(publish(3, "new"), Error);
  EXPECT_EQ(read_file(checkpoints.published(3) / "x"), "old");
}

TEST_F(Folders, BadNamesAreErrors) {
  const Folder deep(folder / std::string(300, 'x'));
  EXPECT_THROW(deep.newest(), Error);
  EXPECT_THROW(deep.begin(1), Error);
}

TEST_F(Folders, LeavesNothingOfRunsThatWereKilled) {
  publish(1, "x");
  write_file_atomically(checkpoints.begin(2) / "half", std::string_view("x"));
  fs::create_directory(checkpoints.published(0) += ".removed");
  write_file_atomically(checkpoints.root() / "latest.tmp-1-0", std::string_view("step-"));
  fs::create_directory(checkpoints.root() / "step-by-step");  // not ours
  const fs::path partial = checkpoints.begin(4);
  EXPECT_THAT(partial.filename().string(),
              testing::MatchesRegex("step-4\\.[0-9a-f]{16}\\.partial"));
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-1", partial.filename().string(),
                                               "step-by-step"}));
  EXPECT_EQ(checkpoints.newest(), 1);
}

// Kills between the calls of publish and keep_last leave these.
TEST_F(Folders, GoesOnFromBetweenAnyTwoCalls) {
  publish(1, "one");
  fs::rename(checkpoints.begin(2), checkpoints.published(2));  // and `latest` still names 1
  EXPECT_EQ(checkpoints.newest(), 2);
  publish(3, "three");
  fs::rename(checkpoints.published(1), checkpoints.published(1) += ".removed");
  publish(4, "four");
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-2", "step-3", "step-4"}));
  EXPECT_EQ(read_file(checkpoints.root() / "latest"), "step-4\n");
  fs::create_directory(checkpoints.root() / "step-007");  // not ours
  EXPECT_EQ(checkpoints.newest(), 4);
}

TEST_F(Folders, AReadOnlyDiskIsSaidSo) {
  const test::SmallDisk disk(folder, "64k");
  if (!disk.is_there()) GTEST_SKIP() << "mounting a small disk needs root";
  publish(1, "x");
  ASSERT_TRUE(disk.make_read_only());
  try {
    checkpoints.begin(2);
    ADD_FAILURE() << "begun on a read-only disk";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_THAT(error.message(), testing::HasSubstr(".partial': Read-only file system"));
  }
  EXPECT_EQ(checkpoints.newest(), 1);
}

}  // namespace
}  // namespace trireme::checkpoint
