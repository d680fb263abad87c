#include "packs/text/data/file_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/packs/text/data/text_folder.h"

namespace trireme::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

class FileLists : public TextFolder {
 protected:
  std::vector<std::string> names(const FileList& list) const {
    std::vector<std::string> result;
    for (const TextFile& file : list.files) {
      result.push_back(fs::relative(file.path, folder).string());
    }
    return result;
  }

  FileList list(const std::vector<std::string>& suffixes = {}) const {
    const fs::path inputs[] = {folder};
    return list_files(inputs, suffixes);
  }
};

TEST_F(FileLists, FoldersWithAllBelowInOrder) {
  for (const char* name : {"b/z.py", "b/a/q.py", "a.py", "c.py", "b.py", "b/.git/x.py", ".hid"}) {
    write(name, "text");
  }
  const FileList files = list();
  EXPECT_THAT(names(files), ElementsAre("a.py", "b/a/q.py", "b/z.py", "b.py", "c.py"));
  EXPECT_EQ(files.report, (TextReport{.files = 5, .hidden = 2}));
  EXPECT_EQ(files.files[0].bytes, 4);
  EXPECT_GT(files.files[0].modified_ns, 1'000'000'000'000'000'000);
}

TEST_F(FileLists, LinksInACircleEnd) {
  write("a/b/x.py", "text");
  fs::create_directory_symlink(folder, folder / "a/b/up");
  fs::create_directory_symlink(folder / "a", folder / "again");
  fs::create_symlink("self", folder / "self");
  fs::create_symlink(folder / "a/b/x.py", folder / "a/b/y.py");
  const FileList files = list();
  EXPECT_THAT(names(files), ElementsAre("a/b/x.py"));
  EXPECT_EQ(files.report, (TextReport{.files = 1, .unreadable = 1}));
}

TEST_F(FileLists, WhatCannotBeReadIsCounted) {
  write("a.py", "text");
  ASSERT_EQ(::mkfifo((folder / "pipe.py").c_str(), 0600), 0);
  fs::create_symlink("nowhere", folder / "broken.py");
  write("closed.py", "text");
  fs::permissions(folder / "closed.py", fs::perms::none);
  const bool is_root = ::geteuid() == 0;
  const FileList files = list();
  EXPECT_EQ(files.report.unreadable, is_root ? 2 : 3);
  EXPECT_EQ(files.report.files, is_root ? 2 : 1);
}

TEST_F(FileLists, SuffixesChooseInFoldersOnly) {
  write("a.py", "text");
  write("b.txt", "text");
  EXPECT_THAT(names(list({".py"})), ElementsAre("a.py"));
  EXPECT_EQ(list({".py"}).report.filtered, 1);
  EXPECT_THAT(names(list({".py", ".txt"})), ElementsAre("a.py", "b.txt"));
  write("c.d.ts", "text");
  EXPECT_THAT(names(list({".d.ts"})), ElementsAre("c.d.ts"));
  EXPECT_THAT(names(list({".ts"})), ElementsAre("c.d.ts"));
  const fs::path inputs[] = {folder / "b.txt", folder, folder / "b.txt"};
  const std::string suffixes[] = {".py"};
  EXPECT_THAT(names(list_files(inputs, suffixes)), ElementsAre("b.txt", "a.py"));
}

TEST_F(FileLists, NothingToReadIsAnError) {
  const auto refusal = [&](const std::vector<fs::path>& inputs) {
    const Error error = error_of([&] { list_files(inputs); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  };
  EXPECT_THAT(refusal({}), HasSubstr("no text was given"));
  EXPECT_THAT(refusal({folder / "missing"}), HasSubstr("missing"));
  EXPECT_THAT(refusal({folder}), HasSubstr("no file to read"));
  write(".hidden", "text");
  EXPECT_THAT(refusal({folder}), HasSubstr("1 hidden"));
}

}  // namespace
}  // namespace trireme::text
