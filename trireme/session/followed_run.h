#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trireme/base/file_lock.h"
#include "trireme/session.h"
#include "trireme/session/run_folder.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::session {

/// What a session that follows a run has found in one of its checkpoints.
struct MadeEvaluation {
  std::int64_t step = 0;  ///< Steps done.
  StepLosses losses;
};

/// As a line of `evaluations.jsonl` (docs/formats.md).
std::string line_of(const MadeEvaluation& made);

/// Of such lines. kCorruptData, naming the field.
std::vector<MadeEvaluation> evaluations_of(const std::string& lines);

/// The run's side, on rank 0: evaluations as they come (RunOptions::evaluates_elsewhere). Errors of all: kIo, kCorruptData.
class Evaluations {
 public:
  explicit Evaluations(const RunFolder& folder) : folder_(folder) {}

  /// What was there before: evaluations of later steps are dropped from the file, since the run comes there again.
  std::vector<MadeEvaluation> begin(std::int64_t next_step);

  /// Lines that have come since, of whole evaluations; mostly none, at the cost of a look at the file's size.
  std::string take();

  /// Steps whose evaluation somebody has begun: their checkpoints have to stay.
  const std::set<std::int64_t>& begun() const { return begun_; }

  /// Whether an evaluation was begun by one who still lives, and has not come.
  bool is_one_coming() const;

 private:
  const RunFolder& folder_;
  std::uint64_t read_ = 0;  ///< Bytes of the file.
  std::set<std::int64_t> begun_;
};

/// Evaluates the checkpoints of a run as they are published, the newest each time, until the run ends (run.json; the last
/// step it evaluates itself) or `stops`. Every rank of a world that is not the run's calls it; rank 0 writes. Blocks.
///
/// evaluate   of the checkpoint in this folder; every rank. Nothing where it was stopped: then so is this.
/// told       steps done and losses of each evaluation, on rank 0; may be empty.
/// stops      on every rank, which call it together.
/// Returns    how many evaluations were made.
/// Errors     kIo where there is no such run; kUnavailable where another world follows it; those of `evaluate`.
std::int64_t follow(
    const collectives::World& world, const std::string& run,
    const std::function<std::optional<StepLosses>(const std::filesystem::path&)>& evaluate,
    const std::function<void(std::int64_t, const StepLosses&)>& told,
    const std::function<bool()>& stops);

}  // namespace trireme::session
