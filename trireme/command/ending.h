#pragma once

#include <cstdint>
#include <string>

#include "trireme/base/json.h"
#include "trireme/command/training_report.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/train/run_record.h"

namespace trireme::command {

/// What is said, and the weights that are written, when training has ended.
class Ending {
 public:
  /// bytes, resident   of the ranks that have most.
  void add_peak(std::int64_t bytes, std::int64_t resident, const layout::Plan& plan);

  /// Writes the weights to `path` too.
  void add_weights(const train::Tensors& weights, const std::string& path);

  void add_evaluation(const program::StepLosses& losses);

  /// A file or folder that was written. name: `checkpoint`.
  void add_file(const std::string& name, const std::string& path);

  /// Prints all of it, after what the report knows.
  void print(const Context& context, const TrainingReport& report);

 private:
  Json json_ = Json::object();
  std::string text_;
};

}  // namespace trireme::command
