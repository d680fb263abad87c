#include "trireme/data/unpack.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/data/folder_files.h"
#include "tests/data/packed_file.h"

namespace trireme::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class UnpackTest : public FolderFiles {
 protected:
  static std::string unpacked(const std::filesystem::path& path) {
    std::string text;
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    unpack(file, path, *packing_of(path), [&](std::span<const std::byte> bytes) {
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    return text;
  }

  std::string complaint(const std::string& name, std::string_view content) const {
    const auto path = write(name, content);
    const Error error = error_of([&] { unpacked(path); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
    EXPECT_THAT(error.message(), HasSubstr(name + "' "));
    return error.message();
  }

  /// Half of it packs well; larger than the pieces that are read and written.
  static std::string some_text(std::size_t bytes) {
    std::mt19937_64 random(7);
    std::string text;
    while (text.size() < bytes) {
      text += std::string(random() % 2000, static_cast<char>(random()));
      for (std::uint64_t i = random() % 2000; i > 0; --i) text += static_cast<char>(random());
    }
    text.resize(bytes);
    return text;
  }
};

TEST_F(UnpackTest, TheEndingTellsThePacking) {
  EXPECT_EQ(packing_of("a/x.jsonl.gz"), Packing::kGzip);
  EXPECT_EQ(packing_of("x.JSONL.ZST"), Packing::kZstd);
  EXPECT_EQ(packing_of("shard.00000.mds.zstd"), Packing::kZstd);
  EXPECT_EQ(packing_of("x.gz/y.jsonl"), std::nullopt);
  EXPECT_EQ(without_packing("a/x.jsonl.gz"), "a/x.jsonl");
  EXPECT_EQ(without_packing("a/x.tar"), "a/x.tar");
}

TEST_F(UnpackTest, BytesComeBackWhateverTheirNumber) {
  for (const std::size_t bytes : {0, 1, 1 << 19, (1 << 19) + 1, 3 << 19}) {
    const std::string text = some_text(bytes);
    EXPECT_TRUE(unpacked(write("x.gz", gzip(text))) == text) << bytes;
    EXPECT_TRUE(unpacked(write("x.zst", zstd(text))) == text) << bytes;
    EXPECT_TRUE(unpacked(write("x.zst", zstd(std::string(bytes, 'a')))) == std::string(bytes, 'a'));
  }
}

TEST_F(UnpackTest, SeveralMembersAreOneFile) {
  const std::string parts[] = {some_text(700000), "", "end"};
  const std::string whole = parts[0] + parts[1] + parts[2];
  std::string members, frames;
  for (const std::string& part : parts) {
    members += gzip(part);
    frames += zstd(part);
  }
  EXPECT_TRUE(unpacked(write("x.gz", members)) == whole);
  EXPECT_TRUE(unpacked(write("x.gz", members + std::string(3000, '\0'))) == whole) << "filled up";
  EXPECT_TRUE(unpacked(write("x.zst", frames)) == whole);
}

TEST_F(UnpackTest, DamageIsNoticedWhereverItIs) {
  const std::string text = some_text(3000);
  for (const auto& [name, packed] : {std::pair{"x.gz", gzip(text)}, {"x.zst", zstd(text)}}) {
    for (std::size_t bytes = 0; bytes < packed.size(); bytes += bytes < 40 ? 1 : 97) {
      EXPECT_THAT(complaint(name, packed.substr(0, bytes)), HasSubstr("is cut off")) << bytes;
    }
    const std::size_t last = packed.size() - 1;  // of a size, of a checksum
    for (const std::size_t at : {std::size_t{0}, packed.size() / 2, last}) {
      std::string damaged = packed;
      damaged[at] ^= 1;
      EXPECT_THAT(complaint(name, damaged), HasSubstr("is damaged, or no")) << name << " " << at;
    }
    EXPECT_THAT(complaint(name, packed + packed.substr(0, 20)), HasSubstr("is cut off"));
    EXPECT_THAT(complaint(name, packed + "more"), HasSubstr("is damaged, or no"));
    EXPECT_THAT(complaint(name, "plain text"), HasSubstr("by byte 10"));
  }
}

TEST_F(UnpackTest, AMissingFileIsNamed) {
  const Error error = error_of([&] { unpacked(folder / "none.gz"); });
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.message(), HasSubstr("none.gz"));
}

}  // namespace
}  // namespace trireme::data
