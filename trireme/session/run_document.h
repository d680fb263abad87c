#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trireme/base/document.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/session.h"

namespace trireme::session {

/// Options by their long name without dashes, and the values that they were given.
using GivenOptions = std::map<std::string, std::vector<std::string>>;

/// `--steps 100 -> 200, --schedule simple`; empty where nothing differs.
std::string changes_text(const GivenOptions& before, const GivenOptions& now);

/// What one start of a run did; what is measured is absent in one that was killed.
struct Segment {
  std::int64_t first_step = 0;
  std::int64_t end_step = 0;               ///< Asked for.
  std::optional<std::int64_t> stopped_at;  ///< Steps done when a signal asked to stop.
  std::string started;                     ///< `2026-11-23T14:05:00Z`; empty: not known.
  std::string host;                        ///< Of rank 0; empty: not known.
  std::string plan;                        ///< File names in the run's folder.
  std::string timeline;                    ///< Empty: none.
  int ranks = 1;
  int stages = 1;
  int replicas = 1;
  std::string schedule;
  std::optional<double> predicted_step_ms;
  PeakBytes predicted_peak_bytes;

  std::optional<Measured> measured;
};

/// A run: what is trained, and each of its starts.
struct RunDocument {
  std::string model;
  std::map<std::string, std::string> options;  ///< train::training_facts
  GivenOptions given;                          ///< To the last start.
  std::uint64_t seed = 0;
  BatchLayout batch;
  std::vector<Segment> segments;
};

inline constexpr DocumentKind kRunDocument{"trireme.run", 1};

/// The run as file form (docs/formats.md). Errors of read_document and write_document.
Json to_json(const RunDocument& document);
void save(const RunDocument& document, const std::filesystem::path& path);
RunDocument load_run(const std::filesystem::path& path);

/// The same of a run that goes on; errors say what to do.
RunDocument load_kept_run(const std::filesystem::path& path);

/// What was trained, and a row for each segment, for people.
std::string show(const RunDocument& document);

/// A segment of the plan, not yet measured.
Segment segment_of(const layout::Plan& plan);

}  // namespace trireme::session
