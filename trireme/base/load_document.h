#pragma once

#include <filesystem>

#include "trireme/base/document.h"
#include "trireme/error.h"

namespace trireme {

/// What `read` returns; its errors name the file.
template <typename Read>
auto naming_file(const std::filesystem::path& path, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.kind(), "'" + path.string() + "': " + error.message());
  }
}

/// What `read` makes of the body of the document at `path`. Errors of `read_document` and of `read`,
/// naming the path.
template <typename Read>
auto load_document(const std::filesystem::path& path, const DocumentKind& kind, Read read) {
  const Json body = read_document(path, kind);
  return naming_file(path, [&] { return read(body); });
}

}  // namespace trireme
