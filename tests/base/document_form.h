#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "trireme/base/document.h"
#include "trireme/base/files.h"
#include "trireme/error.h"

namespace trireme::forms {

/// The functions of a value's file form.
template <typename Value>
struct DocumentForm {
  DocumentKind kind;
  Json (*to_json)(const Value&);
  Value (*from_json)(const Json&);
  std::string (*save)(const Value&, const std::filesystem::path&);
  Value (*load)(const std::filesystem::path&);
};

/// Value -> text -> value -> text gives the same value and the same bytes.
template <typename Value>
void expect_round_trip(const DocumentForm<Value>& form, const Value& value) {
  const std::string text = to_document_text(form.kind, form.to_json(value));
  const Value back = form.from_json(parse_document(form.kind, text, "x"));
  EXPECT_EQ(back, value);
  EXPECT_EQ(to_document_text(form.kind, form.to_json(back)), text);
}

/// The message with which a changed form is refused as kCorruptData; empty where it is not.
template <typename Value>
std::string complaint(const DocumentForm<Value>& form, const Value& value,
                      const std::function<void(Json&)>& change) {
  Json json = form.to_json(value);
  change(json);
  try {
    form.from_json(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    return error.message();
  }
  return "";
}

/// What is saved is loaded; a file with another body is refused, naming it.
template <typename Value>
void expect_files(const DocumentForm<Value>& form, const Value& value) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      (std::string(form.kind.format) + "_" + std::to_string(::getpid()) + ".json");
  EXPECT_EQ(form.save(value, path), document_sha256(form.kind, form.to_json(value)));
  EXPECT_EQ(form.load(path), value);
  write_document(path, form.kind, {{"not a field", 1}});
  try {
    form.load(path);
    ADD_FAILURE() << "a file with another body was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(error.message(), ::testing::HasSubstr(path.string()));
  }
  std::filesystem::remove(path);
}

/// The form's example in docs/formats.md is, byte for byte, what the code writes.
template <typename Value>
void expect_example(const DocumentForm<Value>& form) {
  const std::string formats = read_file("docs/formats.md");
  const std::size_t section = formats.find("(`" + std::string(form.kind.format) + "`)");
  ASSERT_NE(section, std::string::npos);
  const std::size_t begin = formats.find("```json\n", section) + 8;
  const std::string example = formats.substr(begin, formats.find("```\n", begin) - begin);
  const Json body = parse_document(form.kind, example, "docs/formats.md");
  EXPECT_EQ(to_document_text(form.kind, form.to_json(form.from_json(body))), example);
}

}  // namespace trireme::forms
