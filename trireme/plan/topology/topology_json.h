#pragma once

#include <filesystem>
#include <string>

#include "trireme/base/document.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::topology {

inline constexpr DocumentKind kTopologyDocument{"trireme.topology", 1};

/// The body of a topology's document (docs/formats.md).
Json to_json(const Topology& topology);

/// Inverse of `to_json`. Says nothing about hosts and cores: `check` (topology.h) does.
///
/// Errors   kCorruptData, naming the field. Any JSON is safe to pass in.
Topology topology_from_json(const Json& body);

/// The `sha256` that the topology's document carries.
std::string topology_sha256(const Topology& topology);

/// Writes the document; returns its sha256. Errors of `write_file_atomically`.
std::string save(const Topology& topology, const std::filesystem::path& path);

/// Inverse of `save`. Errors of `read_document`; kCorruptData, naming file and field, where its
/// content is not a topology or does not pass `check`.
Topology load(const std::filesystem::path& path);

}  // namespace trireme::topology
