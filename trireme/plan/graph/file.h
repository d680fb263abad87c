#pragma once

#include <filesystem>
#include <string>

#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

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
