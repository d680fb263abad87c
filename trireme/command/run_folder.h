#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trireme/base/document.h"
#include "trireme/engine/checkpoint/folder.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::command {

/// What one start of a run did; what is measured is absent in one that was killed.
struct Segment {
  std::int64_t first_step = 0;
  std::int64_t end_step = 0;  ///< Asked for.
  std::string plan;           ///< File names in the run's folder.
  std::string timeline;       ///< Empty: none.
  int ranks = 1;
  int stages = 1;
  int replicas = 1;
  std::string schedule;
  std::optional<double> predicted_step_ms;
  std::vector<std::map<std::string, std::int64_t>> predicted_peak_bytes;  ///< By rank, by kind.

  struct Measured {
    double median_step_ms = 0;
    double data_wait_fraction = 0;                  ///< Of the step, on the rank that waited most.
    std::vector<std::int64_t> peak_bytes;           ///< By rank, of live tensors.
    std::vector<std::int64_t> resident_peak_bytes;  ///< By rank, of the process.
  };
  std::optional<Measured> measured;
};

/// A run: what is trained, and each of its starts.
struct RunRecord {
  std::string model;
  std::map<std::string, std::string> facts;  ///< train::training_facts
  layout::BatchLayout batch;
  std::vector<Segment> segments;
};

inline constexpr DocumentKind kRunDocument{"trireme.run", 1};

/// The record as file form (docs/formats.md). Errors of read_document and write_document.
void save(const RunRecord& record, const std::filesystem::path& path);
RunRecord load_run(const std::filesystem::path& path);

/// A segment of the plan, not yet measured.
Segment segment_of(const layout::Plan& plan);

/// The folder of a run: record, metrics, plans, profiles, checkpoints. One process at a time, rank
/// 0, may write to it.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path root) : root_(std::move(root)) {}
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  /// Makes the folder and keeps others out until this object ends, or its process.
  ///
  /// Errors   kUnavailable where another process has it and does not give it up within 10 s; kIo.
  void lock();

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path path(const std::string& name) const { return root_ / name; }
  std::filesystem::path record() const { return path("run.json"); }
  std::filesystem::path metrics() const { return path("metrics.jsonl"); }
  checkpoint::Folder checkpoints() const { return checkpoint::Folder(path("checkpoints")); }

  /// `plan-4.json` and its like: what is made for so many ranks.
  static std::string name_for(const std::string& what, int ranks);

 private:
  std::filesystem::path root_;
  int lock_ = -1;
};

/// Removes lines of steps that a run that goes on at `step` does again, and one that was cut off.
/// Nothing where there is no file. kIo.
void rewind_metrics(const std::filesystem::path& path, std::int64_t step);

}  // namespace trireme::command
