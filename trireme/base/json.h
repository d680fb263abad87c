#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace trireme {

/// A JSON value. Objects keep their keys sorted by bytes.
using Json = nlohmann::json;

/// Deepest nesting of objects and arrays that `parse_json` accepts.
inline constexpr int kMaxJsonDepth = 64;

/// One line without spaces, keys sorted, UTF-8 kept, numbers with the fewest digits that read back
/// the same: byte for byte what Python writes with
/// `json.dumps(x, sort_keys=True, separators=(",", ":"), ensure_ascii=False)`.
///
/// Reals must be finite and strings UTF-8, else kInvalidArgument.
std::string compact_text(const Json& json);

/// The same values to be read by people: two spaces of indent, what fits into 100 columns on one
/// line, lists of numbers filled up to that width, a newline at the end. Byte-stable.
std::string readable_text(const Json& json);

/// Parses one JSON value that takes up all of `text`.
///
/// origin   what is parsed (a path), for messages.
/// Errors   kCorruptData, with the position, where `text` is not JSON, is cut off, is nested deeper
///          than kMaxJsonDepth, repeats a key of an object, or has a number beyond the range of its
///          type.
Json parse_json(std::string_view text, std::string_view origin);

}  // namespace trireme
