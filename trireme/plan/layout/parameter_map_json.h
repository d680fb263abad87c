#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "trireme/base/document.h"
#include "trireme/plan/layout/parameter_map.h"

namespace trireme::layout {

inline constexpr DocumentKind kParameterMapDocument{"trireme.parameter_map", 1};

/// Names of kinds of buckets, indexed by them.
inline constexpr std::array<std::string_view, 3> kBucketKindNames = {"owner", "mirror", "site"};

/// The body of a parameter map's document (docs/formats.md).
Json to_json(const ParameterMap& map);

/// Inverse of `to_json`. Says nothing about graph and plan: `check` (parameter_map.h) does.
///
/// Errors   kCorruptData, naming the field. Any JSON is safe to pass in.
ParameterMap parameter_map_from_json(const Json& body);

/// Writes the document; returns its sha256. Errors of `write_file_atomically`.
std::string save(const ParameterMap& map, const std::filesystem::path& path);

/// Inverse of `save`. Errors of `read_document` and `parameter_map_from_json`, naming the file.
ParameterMap load_parameter_map(const std::filesystem::path& path);

}  // namespace trireme::layout
