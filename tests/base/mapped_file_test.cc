#include "trireme/base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "trireme/base/files.h"
#include "trireme/error.h"

namespace trireme {
namespace {

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::filesystem::path mapped_path() {
  return std::filesystem::temp_directory_path() / ("trireme_mapped_" + std::to_string(::getpid()));
}

TEST(MappedFile, HasTheBytesOfTheFile) {
  const auto path = mapped_path();
  for (const std::size_t size : {0, 1, 4096, 100'001}) {
    std::string content(size, '\0');
    for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 31);
    write_file_atomically(path, content);
    const MappedFile file(path);
    EXPECT_EQ(text_of(file), content);
    write_file_atomically(path, "another file of that name");
    EXPECT_EQ(text_of(file), content) << "the mapping must be of the old file";
  }
  std::filesystem::remove(path);
}

TEST(MappedFile, MovesItsMapping) {
  const auto path = mapped_path();
  write_file_atomically(path, "one");
  MappedFile first(path);
  MappedFile second(std::move(first));
  EXPECT_EQ(text_of(second), "one");
  write_file_atomically(path, "two");
  second = MappedFile(path);
  EXPECT_EQ(text_of(second), "two");
  std::filesystem::remove(path);
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  const auto kind_of = [](const std::filesystem::path& path) {
    try {
      const MappedFile file(path);
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), testing::HasSubstr(path.string()));
      return error.kind();
    }
    return ErrorKind::kCancelled;
  };
  EXPECT_EQ(kind_of("/tmp"), ErrorKind::kInvalidArgument);
  EXPECT_EQ(kind_of("/dev/null"), ErrorKind::kInvalidArgument);
  EXPECT_EQ(kind_of(mapped_path() / "missing"), ErrorKind::kIo);
}

}  // namespace
}  // namespace trireme
