#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "trireme/base/json.h"
#include "trireme/base/json_field.h"

namespace trireme {

/// What a document says it is, `{"trireme.graph", 1}`.
struct DocumentKind {
  std::string_view format;
  int version;
  bool needs_hash = false;  ///< Nobody edits it by hand: refused without its field `sha256`.
};

/// A document is a JSON object with the fields `format`, `version` and `sha256` beside those of
/// its body. `sha256` is that of `compact_text` of the object without this field, so that other
/// programs can write one (docs/formats.md shows how). A document without the field is accepted
/// too, where its kind does not need it: whoever edits one by hand deletes it.
///
/// body     an object without these three fields, else kInvalidArgument.
std::string document_sha256(const DocumentKind& kind, const Json& body);

/// The file's text: `readable_text` with the three fields.
std::string to_document_text(const DocumentKind& kind, const Json& body);

/// The body of a document: inverse of `to_document_text`.
///
/// origin   what is read (a path), for messages.
/// Errors   kCorruptData where the text is not JSON or does not match its hash; kInvalidArgument
///          where it is a document of another format or of a version that this build cannot read.
Json parse_document(const DocumentKind& kind, std::string_view text, std::string_view origin);

/// `write_file_atomically` of the text. Returns the document's sha256.
std::string write_document(const std::filesystem::path& path, const DocumentKind& kind,
                           const Json& body);

/// What the document at `path` says it is: its field `format`. Its version, hash and body are not
/// looked at.
///
/// Errors   those of `read_file`; kCorruptData where it is not JSON; kInvalidArgument where it is no
///          document.
std::string document_format(const std::filesystem::path& path);

/// Errors of `read_file` and `parse_document`, naming the path.
Json read_document(const std::filesystem::path& path, const DocumentKind& kind);

}  // namespace trireme
