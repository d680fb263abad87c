#pragma once

#include <filesystem>

namespace trireme::command {

/// The checkpoint that a path means: a folder `step-N`, or the newest of a run's folder, of its folder
/// `checkpoints`, or of the file `latest` in it. Any other path is returned as it is.
std::filesystem::path checkpoint_at(const std::filesystem::path& path);

/// The document that a path means: `run.json` of a run's folder, `index.json` of what `checkpoint_at`
/// finds. Any other path is returned as it is.
std::filesystem::path document_at(const std::filesystem::path& path);

}  // namespace trireme::command
