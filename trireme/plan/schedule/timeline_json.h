#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/document.h"
#include "trireme/plan/schedule/timeline.h"

namespace trireme::schedule {

inline constexpr DocumentKind kTimelineDocument{"trireme.timeline", 1};

/// The body of a document with timelines side by side (docs/formats.md). It is a Chrome trace: open
/// the file in chrome://tracing or ui.perfetto.dev. A process is a rank; its rows are the tracks of
/// the first timeline, then those of the next.
///
/// timelines   their events have times of at most kMaxTimeUs, no negative duration or rank, else
///             kInvalidArgument.
Json to_json(std::span<const Timeline> timelines);

/// Inverse of `to_json`.
///
/// Errors   kCorruptData, naming the field. Any JSON is safe to pass in.
std::vector<Timeline> timelines_from_json(const Json& body);

/// Writes the document; returns its sha256. Errors of `write_file_atomically` and `to_json`.
std::string save(std::span<const Timeline> timelines, const std::filesystem::path& path);

/// Inverse of `save`. Errors of `read_document` and `timelines_from_json`, naming the file.
std::vector<Timeline> load_timelines(const std::filesystem::path& path);

}  // namespace trireme::schedule
