#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

namespace trireme::checkpoint {

/// The checkpoints of a run: folders `step-N`, each whole from the moment it has this name, and a
/// file `latest` with the name of the newest one. What stands under another name may go.
///
/// One process at a time publishes. Blocking; errors kIo and kResourceExhausted, naming the path.
class Folder {
 public:
  /// root   need not exist yet.
  explicit Folder(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }

  /// Published ones, ascending.
  std::vector<std::int64_t> steps() const;

  /// The newest; nothing where there is none.
  std::optional<std::int64_t> newest() const;

  std::filesystem::path published(std::int64_t step) const;

  /// Makes an empty folder `step-N.<random>.partial` to write into, and the root; removes what runs
  /// that were killed have left. A rank of one of them that still writes has another folder's name.
  std::filesystem::path begin(std::int64_t step) const;

  /// Gives a folder that was begun, whose files are synced, its published name, and writes
  /// `latest`. kIo where there is one of this step: a run does not go back.
  void publish(const std::filesystem::path& partial, std::int64_t step) const;

  /// Renames a published one that is damaged, to `step-N.damaged`, so that a run may publish that
  /// step again; one of that name from before is removed.
  void set_aside(std::int64_t step) const;

  /// Removes all but the newest `count` and the newest whose numbers are all finite: what a run can
  /// go on from whatever became of it. kInvalidArgument below 1.
  ///
  /// others   steps of those that stay, too.
  void keep_last(int count, const std::set<std::int64_t>& others = {}) const;

 private:
  std::vector<std::filesystem::path> entries() const;  ///< None where there is no folder.
  bool is_finite(std::int64_t step) const;             ///< False also where it cannot be read.
  void remove_leftovers() const;

  std::filesystem::path root_;
};

}  // namespace trireme::checkpoint
