#include "trireme/base/document.h"

#include "trireme/base/files.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme {
namespace {

/// The document without its hash.
Json with_kind(const DocumentKind& kind, const Json& body) {
  if (!body.is_object()) throw Error(ErrorKind::kInvalidArgument, "a document must be an object");
  for (const char* name : {"format", "version", "sha256"}) {
    if (body.contains(name)) {
      throw Error(ErrorKind::kInvalidArgument,
                  std::string("a document's body must not have the field \"") + name + "\"");
    }
  }
  Json document = body;
  document["format"] = kind.format;
  document["version"] = kind.version;
  return document;
}

/// The field `format`, shortened; `expected` is what the document should be.
std::string format_of(const Json& document, const std::string& expected,
                      const std::string& origin) {
  if (!document.is_object() || !document.contains("format") || !document["format"].is_string()) {
    throw Error(ErrorKind::kInvalidArgument,
                "'" + origin + "' is JSON but not " + expected + ": it has no field \"format\"");
  }
  return document["format"].get<std::string>().substr(0, 80);
}

void check_format(const DocumentKind& kind, const Json& document, const std::string& origin) {
  const std::string expected = "a " + std::string(kind.format) + " document";
  const std::string format = format_of(document, expected, origin);
  if (format != kind.format) {
    throw Error(ErrorKind::kInvalidArgument, "'" + origin + "' is not " + expected + " but a " +
                                                 format + "; give the right file");
  }
}

void check_version(const DocumentKind& kind, JsonObject& object, const std::string& origin) {
  const std::int64_t version = object.required("version").integer(1);
  if (version != kind.version) {
    throw Error(ErrorKind::kInvalidArgument,
                "'" + origin + "' has version " + std::to_string(version) + " of " +
                    std::string(kind.format) + ", this build reads version " +
                    std::to_string(kind.version) +
                    (version > kind.version ? "; use a newer build" : "; make the file again"));
  }
}

void check_hash(const DocumentKind& kind, Json& document, JsonObject& object,
                const std::string& origin) {
  const std::optional<JsonField> field = object.optional("sha256");
  if (!field && kind.needs_hash) {
    throw Error(ErrorKind::kCorruptData, "'" + origin + "' has no field sha256; get it again");
  }
  if (!field) return;
  const std::string claimed = field->text();
  document.erase("sha256");
  const std::string actual = sha256(compact_text(document));
  if (claimed != actual) {
    throw Error(ErrorKind::kCorruptData,
                "'" + origin + "' was changed or damaged: its sha256 says " +
                    claimed.substr(0, 64) + ", its content has " + actual +
                    (kind.needs_hash ? "; get it again"
                                     : "; if you edited it, delete its line \"sha256\", else get "
                                       "it again"));
  }
}

}  // namespace

std::string document_sha256(const DocumentKind& kind, const Json& body) {
  return sha256(compact_text(with_kind(kind, body)));
}

std::string to_document_text(const DocumentKind& kind, const Json& body) {
  Json document = with_kind(kind, body);
  document["sha256"] = sha256(compact_text(document));
  return readable_text(document);
}

Json parse_document(const DocumentKind& kind, std::string_view text, std::string_view origin) {
  const std::string name(origin);
  Json document = parse_json(text, origin);
  check_format(kind, document, name);
  JsonObject object(JsonField(document, name));
  check_version(kind, object, name);
  check_hash(kind, document, object, name);
  document.erase("format");
  document.erase("version");
  return document;
}

std::string write_document(const std::filesystem::path& path, const DocumentKind& kind,
                           const Json& body) {
  Json document = with_kind(kind, body);
  const std::string hash = sha256(compact_text(document));
  document["sha256"] = hash;
  write_file_atomically(path, readable_text(document));
  return hash;
}

std::string document_format(const std::filesystem::path& path) {
  return format_of(parse_json(read_file(path), path.string()), "a document", path.string());
}

Json read_document(const std::filesystem::path& path, const DocumentKind& kind) {
  return parse_document(kind, read_file(path), path.string());
}

}  // namespace trireme
