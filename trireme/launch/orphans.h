#pragma once

#include <span>

#include "trireme/launch/rank_process.h"

namespace trireme::launch {

/// What ranks started and left behind, outside their process groups: it becomes this process's
/// children, is reaped when it ends and killed at the end.
///
/// Caller-synchronised. Process-wide: this process is the subreaper while one lives.
class Orphans {
 public:
  /// is_active   else it does nothing.
  explicit Orphans(bool is_active);
  ~Orphans();
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;

  /// Takes the exit statuses of those that have ended; those of `ranks` are left.
  void reap(std::span<const RankProcess> ranks);

  /// Kills all that is left. Blocks up to 5 s.
  void end_all();

 private:
  const bool is_active_;
};

}  // namespace trireme::launch
