#include "trireme/command/run_files.h"

#include <system_error>

#include "trireme/engine/checkpoint/checkpoint_folder.h"
#include "trireme/session/run_folder.h"

namespace trireme::command {
namespace {

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

}  // namespace

std::filesystem::path checkpoint_at(const std::filesystem::path& path) {
  if (is_file(path / "index.json")) return path;
  const bool is_latest = path.filename() == "latest" && is_file(path);
  const std::filesystem::path root = is_latest ? path.parent_path() : path;
  for (const auto& place : {root, root / "checkpoints"}) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(place, ignored)) continue;
    const checkpoint::Folder folder(place);
    if (const auto newest = folder.newest()) return folder.published(*newest);
  }
  return path;
}

std::filesystem::path document_at(const std::filesystem::path& path) {
  const std::filesystem::path run = session::RunFolder(path).document();
  if (is_file(run)) return run;
  const std::filesystem::path index = checkpoint_at(path) / "index.json";
  return is_file(index) ? index : path;
}

}  // namespace trireme::command
