#pragma once

#include <filesystem>
#include <string>

#include "trireme/base/document.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::profile {

inline constexpr DocumentKind kProfileDocument{"trireme.profile", 1};

/// The body of a profile's document (docs/formats.md).
Json to_json(const Profile& profile);

/// Inverse of `to_json`. Says nothing about the graph: `check` (profile.h) does.
///
/// Errors   kCorruptData, naming the field. Any JSON is safe to pass in.
Profile profile_from_json(const Json& body);

/// The `sha256` that the profile's document carries.
std::string profile_sha256(const Profile& profile);

/// Writes the document; returns its sha256. Errors of `write_file_atomically`.
std::string save(const Profile& profile, const std::filesystem::path& path);

/// Inverse of `save`. Errors of `read_document`; kCorruptData, naming file and field, where its
/// content is not a profile or does not pass `check_contents`.
Profile load(const std::filesystem::path& path);

/// The same, of this graph: errors of `check_same_graph` and `check` too, naming the file.
Profile load(const std::filesystem::path& path, const graph::Graph& recorded);

}  // namespace trireme::profile
