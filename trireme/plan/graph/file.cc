#include "trireme/plan/graph/file.h"

#include "trireme/base/files.h"
#include "trireme/error.h"
#include "trireme/plan/graph/check.h"
#include "trireme/plan/graph/json.h"

namespace trireme::graph {
namespace {

/// Reading takes some 30 times as much memory.
constexpr std::uintmax_t kMostFileBytes = std::uintmax_t{64} << 20;

}  // namespace

std::filesystem::path constants_path(const std::filesystem::path& path) {
  return std::filesystem::path(path).replace_extension(".safetensors");
}

std::string save(const Graph& graph, const std::filesystem::path& path) {
  if (path.extension() == ".safetensors") {
    throw Error(ErrorKind::kInvalidArgument,
                "cannot save a graph to '" + path.string() + "'; give it the extension .json");
  }
  check(graph);
  const std::vector<std::byte> constants = constants_file(graph);
  if (!constants.empty()) write_file_atomically(constants_path(path), constants);
  return write_document(path, kGraphDocument, to_json(graph));
}

Graph load(const std::filesystem::path& path) {
  std::error_code ignored;  // Whoever reads it says what is wrong.
  const std::uintmax_t bytes = std::filesystem::file_size(path, ignored);
  if (!ignored && bytes > kMostFileBytes) {
    throw Error(ErrorKind::kInvalidArgument,
                "'" + path.string() + "' has " + std::to_string(bytes) + " bytes; a graph has at " +
                    "most " + std::to_string(kMostFileBytes) + ", some 40,000 nodes");
  }
  const Json body = read_document(path, kGraphDocument);
  try {
    if (!has_constants(body)) return graph_from_json(body);
    return graph_from_json(body, read_file_bytes(constants_path(path)));
  } catch (const Error& error) {
    throw Error(error.kind(), "'" + path.string() + "': " + error.message());
  }
}

}  // namespace trireme::graph
