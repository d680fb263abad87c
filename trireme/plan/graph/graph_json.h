#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/document.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

inline constexpr DocumentKind kGraphDocument{"trireme.graph", 1};

/// The body of a graph's document (docs/formats.md). The data of constants is not in it but in
/// `constants_file`, whose hash it carries.
///
/// Beside the graph it lists, for readers, what follows from it: its `graph_sha256`, use sites, tie
/// groups, allowed cuts. `graph` must pass `check`.
Json to_json(const Graph& graph);

/// The safetensors file with the data of the constants, named by their value ids; empty where the
/// graph has none.
std::vector<std::byte> constants_file(const Graph& graph);

/// Inverse of `to_json`; the result has passed `check`.
///
/// constants   what `constants_file` gave; empty where there are none.
/// Errors      kCorruptData, naming the field: a missing, unknown or mistyped field, a broken
///             invariant, constants of another graph, or a `graph_sha256` that is not the graph's.
///             What `derived` lists is not looked at: another build may have had other rules for it.
///             Any JSON is safe to pass in.
Graph graph_from_json(const Json& body, std::span<const std::byte> constants = {});

/// Whether a body needs a constants file.
bool has_constants(const Json& body);

/// Identifies what the graph computes: nodes, values, parameters, buffers, inputs, losses, constants.
/// Plans, profiles, parameter maps and checkpoints name a graph by it. Not in it are the version of
/// torch that recorded, the names of nodes, and what is derived (use sites, allowed cuts): another
/// torch, or another rule for cuts, leaves them valid. docs/formats.md says how a program computes
/// it. The `sha256` of the graph's document is another hash.
///
/// Cost   writes most of the document; keep the result.
std::string graph_sha256(const Graph& graph);

/// Writes the graph's document to `path` (`NAME.json`) and, where it has constants, their data to
/// `NAME.safetensors` beside it, that one first. Returns the document's sha256.
///
/// Errors   kInvalidArgument where the graph fails `check`; those of `write_file_atomically`.
std::string save(const Graph& graph, const std::filesystem::path& path);

/// Inverse of `save`. Errors of `read_document` and `graph_from_json`, naming the file.
Graph load(const std::filesystem::path& path);

/// Where `save` puts the constants: `path` with the extension `.safetensors`.
std::filesystem::path constants_path(const std::filesystem::path& path);

}  // namespace trireme::graph
