// One line of 100 MB: bounded time, bounded memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>

#include "packs/text/data/prepare.h"
#include "tests/packs/text/data/text_folder.h"

namespace trireme::text {
namespace {

constexpr std::int64_t kLineBytes = 100'000'000;

class LongLine : public TextFolder {
 protected:
  /// `before`, 100 MB of `unit` and numbers, `after`; no newline within.
  std::filesystem::path write_line(const std::string& name, const std::string& unit,
                                   const std::string& before = "", const std::string& after = "") {
    std::ofstream file(folder / name);
    file << before;
    for (std::int64_t begin = file.tellp(), i = 0; file.tellp() - begin < kLineBytes; ++i) {
      file << unit << i;
    }
    file << after << "\n";
    return folder / name;
  }

  Prepared prepare_line(const std::filesystem::path& path) {
    write("more.py", sample_code(1, 50));
    return prepare({.inputs = {path, folder / "more.py"},
                    .tokenizer = {.num_pieces = 400, .sample_bytes = 200'000},
                    .cache = folder / "cache"},
                   Logger(LogLevel::kWarning));
  }
};

std::int64_t peak_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

TEST_F(LongLine, OfPlainTextIsCut) {
  const Prepared prepared = prepare_line(write_line("line.txt", " words of one very long line"));
  EXPECT_EQ(prepared.report.cut, 1);
  EXPECT_GE(prepared.report.documents, kLineBytes / kMaxDocumentBytes);
  EXPECT_LT(peak_mib(), 1024);
}

TEST_F(LongLine, WithoutABlankIsCut) {
  const Prepared prepared = prepare_line(write_line("line.txt", "x\u4e2d\U0001F600"));
  EXPECT_EQ(prepared.report.cut, 1);
  EXPECT_EQ(prepared.report.repaired, 0);
  EXPECT_LT(peak_mib(), 1024);
}

TEST_F(LongLine, OfJsonHasALimit) {
  const std::filesystem::path path = write("line.jsonl", "");
  std::filesystem::resize_file(path, (std::uintmax_t{256} << 20U) + 1);
  TextReader reader({{.path = path}}, kMaxDocumentBytes);
  const Error error = error_of([&] { reader.next(); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), testing::HasSubstr("line 1 is longer than 256 MiB"));
}

TEST_F(LongLine, OfJsonIsCut) {
  const Prepared prepared = prepare_line(
      write_line("line.jsonl", " words of one very long line", "{\"text\": \"", "\"}"));
  EXPECT_EQ(prepared.report.cut, 1);
  EXPECT_GE(prepared.report.documents, kLineBytes / kMaxDocumentBytes);
  EXPECT_LT(peak_mib(), 1536);
}

}  // namespace
}  // namespace trireme::text
