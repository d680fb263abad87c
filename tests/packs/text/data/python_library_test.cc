#include "packs/text/data/python_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/packs/text/data/text_folder.h"

namespace trireme::text {
namespace {

class PythonLibrary : public TextFolder {};

TEST_F(PythonLibrary, TheNewestIsFound) {
  for (const std::string name : {"python3", "python3.9", "python3.10", "python3.12", "python3.x"}) {
    write(name + (name == "python3.12" ? "/other.py" : "/abc.py"), "x = 1\n");
  }
  EXPECT_EQ(python_library("--text", folder), folder / "python3.10");
}

TEST_F(PythonLibrary, WhereThereIsNoneTheOptionIsNamed) {
  const Error error = error_of([&] { python_library("--any-text", folder); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnavailable);
  EXPECT_THAT(error.message(), testing::HasSubstr("--any-text"));
}

}  // namespace
}  // namespace trireme::text
