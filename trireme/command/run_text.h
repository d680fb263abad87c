#pragma once

#include <string>

#include "trireme/base/document.h"

namespace trireme::command {

/// What a recipe writes about a run (docs/formats.md, Run).
inline constexpr DocumentKind kRunDocument{"trireme.run", 1};

/// The run for people: what was trained, and a row for each segment.
///
/// body     of the document.
/// Errors   kCorruptData, naming the field. Any JSON is safe to pass in.
std::string run_text(const Json& body, const std::string& origin);

}  // namespace trireme::command
