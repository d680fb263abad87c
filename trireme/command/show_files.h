#pragma once

#include <string>

#include "trireme/base/json.h"

namespace trireme::command {

/// A file as JSON and as text for people.
struct Shown {
  Json json;
  std::string text;
};

/// The steps and evaluations of a run's metrics.jsonl: in text some of the steps, evenly spaced, and
/// the last. A last line that a kill cut off is left out.
///
/// Errors   kIo; kCorruptData, naming the line.
Shown show_metrics(const std::string& file);

/// Names, types and shapes of the tensors of a safetensors file. Errors: those of safetensors::parse.
Shown show_tensors(const std::string& file);

}  // namespace trireme::command
