#include "trireme/base/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "trireme/base/files.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme {
namespace {

using testing::HasSubstr;

constexpr DocumentKind kKind{"trireme.test", 2};

Error document_error(std::string_view text) {
  try {
    parse_document(kKind, text, "file.json");
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::kCancelled, "was accepted");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(Document, HasFormatVersionAndHash) {
  const std::string hash =
      sha256(std::string_view(R"({"format":"trireme.test","version":2,"x":1})"));
  EXPECT_EQ(document_sha256(kKind, {{"x", 1}}), hash);
  EXPECT_EQ(to_document_text(kKind, {{"x", 1}}),
            "{\n  \"format\": \"trireme.test\",\n  \"sha256\": \"" + hash +
                "\",\n  \"version\": 2,\n  \"x\": 1\n}\n");
}

TEST(Document, ReadsWhatItWrote) {
  const Json body = {{"list", {1, 0.5, nullptr, "text", true}}, {"real", -0.0}};
  const std::string text = to_document_text(kKind, body);
  const Json back = parse_document(kKind, text, "x");
  EXPECT_EQ(back, body);
  EXPECT_EQ(to_document_text(kKind, back), text);
}

TEST(Document, SpaceDoesNotMatterAndAnAbsentHashIsNotChecked) {
  const std::string text = to_document_text(kKind, {{"x", 1}});
  EXPECT_EQ(parse_document(kKind, compact_text(parse_json(text, "x")), "x"), Json({{"x", 1}}));
  EXPECT_EQ(parse_document(kKind, R"({"format":"trireme.test","version":2,"x":7})", "x"),
            Json({{"x", 7}}));
}

TEST(Document, AChangedValueDoesNotMatchTheHash) {
  const Error error = document_error(replaced(to_document_text(kKind, {{"x", 1}}), ": 1", ": 3"));
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), HasSubstr("'file.json' was changed or damaged"));
  EXPECT_THAT(error.message(), HasSubstr("delete its line \"sha256\""));
}

TEST(Document, AnotherFormatOrVersionIsNamed) {
  const std::string text = to_document_text(kKind, {{"x", 1}});
  const Error format = document_error(replaced(text, "trireme.test", "trireme.plan"));
  EXPECT_EQ(format.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(format.message(), HasSubstr("not a trireme.test document but a trireme.plan"));

  const Error newer = document_error(replaced(text, "\"version\": 2", "\"version\": 3"));
  EXPECT_EQ(newer.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(newer.message(), HasSubstr("use a newer build"));

  const Error foreign = document_error(R"({"name": "left-pad"})");
  EXPECT_EQ(foreign.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(foreign.message(), HasSubstr("no field \"format\""));
  EXPECT_EQ(document_error("[]").kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(document_error(R"({"format": "trireme.test"})").kind(), ErrorKind::kCorruptData);
}

TEST(Document, EveryTruncationIsAnError) {
  const std::string text = to_document_text(kKind, {{"x", {1, 2, 3}}});
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    EXPECT_EQ(document_error(text.substr(0, length)).kind(), ErrorKind::kCorruptData) << length;
  }
}

TEST(Document, TheBodyMustLeaveTheEnvelopeAlone) {
  for (const Json& body : {Json({{"format", "x"}}), Json({{"sha256", ""}}), Json({{"version", 1}}),
                           Json::array(), Json(1)}) {
    EXPECT_THROW(to_document_text(kKind, body), Error);
  }
}

TEST(Document, FileErrorsNameThePath) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("trireme_document_" + std::to_string(::getpid()) + ".json");
  EXPECT_EQ(write_document(path, kKind, {{"x", 1}}), document_sha256(kKind, {{"x", 1}}));
  EXPECT_EQ(read_document(path, kKind), Json({{"x", 1}}));
  write_file_atomically(path, std::string_view("\x7f"
                                               "ELF"));
  try {
    read_document(path, kKind);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(error.message(), HasSubstr(path.string()));
  }
  std::filesystem::remove(path);
  EXPECT_THROW(read_document(path, kKind), Error);
}

TEST(Document, SaysWhatItIs) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("trireme_format_" + std::to_string(::getpid()) + ".json");
  write_document(path, kKind, {{"x", 1}});
  EXPECT_EQ(document_format(path), kKind.format);
  for (const std::string_view other : {"{}", "[]", "3", R"({"format": 3})"}) {
    write_file_atomically(path, other);
    EXPECT_THROW(document_format(path), Error);
  }
  std::filesystem::remove(path);
  EXPECT_THROW(document_format(path), Error);
}

}  // namespace
}  // namespace trireme
