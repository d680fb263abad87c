#pragma once

#include <filesystem>
#include <string>

#include "trireme/base/document.h"
#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {

inline constexpr DocumentKind kPlanDocument{"trireme.plan", 1};

/// The body of a plan's document (docs/formats.md).
Json to_json(const Plan& plan);

/// Inverse of `to_json`. Says nothing about the graph: `check` (plan_check.h) does.
///
/// Errors   kCorruptData, naming the field. Any JSON is safe to pass in.
Plan plan_from_json(const Json& body);

/// The `sha256` that the plan's document carries.
std::string plan_sha256(const Plan& plan);

/// Writes the document; returns its sha256. Errors of `write_file_atomically`.
std::string save(const Plan& plan, const std::filesystem::path& path);

/// Inverse of `save`. Errors of `read_document` and `plan_from_json`, naming the file.
Plan load(const std::filesystem::path& path);

/// The same, for this graph: errors of `checked_graph` too, naming the file.
Plan load(const std::filesystem::path& path, const graph::Graph& recorded);

}  // namespace trireme::layout
