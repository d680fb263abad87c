#pragma once

#include <filesystem>
#include <string>

#include "trireme/base/document.h"
#include "trireme/plan/sharding/find_sharding.h"

namespace trireme::sharding {

inline constexpr DocumentKind kShardingDocument{"trireme.sharding", 1};

/// The body of a sharding's document (docs/formats.md).
Json to_json(const Sharding& sharding);

/// Inverse of `to_json`. Says nothing about the graph: `check` does.
///
/// Errors   kCorruptData, naming the field. Any JSON is safe to pass in.
Sharding sharding_from_json(const Json& body);

/// Writes the document; returns its sha256. Errors of `write_file_atomically`.
std::string save(const Sharding& sharding, const std::filesystem::path& path);

/// Inverse of `save`. Errors of `read_document` and `sharding_from_json`, naming the file.
Sharding load_sharding(const std::filesystem::path& path);

}  // namespace trireme::sharding
