#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trireme/base/descriptor.h"
#include "trireme/base/file_lock.h"
#include "trireme/engine/checkpoint/checkpoint_folder.h"

namespace trireme::session {

/// The folder of a run: run.json, metrics, plans, profiles, checkpoints. One process at a time,
/// rank 0, may write to it.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path root) : root_(std::move(root)) {}

  /// Makes the folder and keeps others out until this object ends, or its process: by a lock of the
  /// file `lock`, and of the folder itself, which nobody can remove to get in.
  ///
  /// Errors   kUnavailable, naming it, where another process has it; one that is about to end gets
  ///          10 s. kIo.
  void lock();

  /// Throws kIo where the folder that was locked is no longer there under its name: what is written
  /// now would be lost, or lie in another.
  void require_here() const;

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path path(const std::string& name) const { return root_ / name; }
  std::filesystem::path document() const { return path("run.json"); }
  std::filesystem::path best() const { return path("best.json"); }
  std::filesystem::path metrics() const { return path("metrics.jsonl"); }
  checkpoint::Folder checkpoints() const { return checkpoint::Folder(path("checkpoints")); }

  /// `profile-4.json` and its like: what is made for so many ranks.
  static std::string name_for(const std::string& what, int ranks);

 private:
  bool try_lock();

  std::filesystem::path root_;
  std::optional<FileLock> lock_;
  Descriptor locked_root_;
};

/// Cuts off the last line of a file of lines where a killed run has left it half written. Nothing
/// where there is no file. kIo.
void cut_half_line(const std::filesystem::path& path);

}  // namespace trireme::session
