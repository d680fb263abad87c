#pragma once

#include <cstdint>
#include <string>

#include "trireme/base/json.h"
#include "trireme/command/training_report.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/train/training_state.h"
#include "trireme/session.h"

namespace trireme::command {

/// A training that ended before its last step because it was asked to.
struct Stop {
  std::int64_t done = 0;  ///< Steps of the whole run.
  std::int64_t num_steps = 0;
  std::string reason;  ///< `signal 15 (Terminated)`
  bool can_resume = false;
};

/// What is said, and the weights that are written, when training has ended.
class Ending {
 public:
  /// Step time and peaks of memory, measured, and beside them what the plan predicted, if it did:
  /// by stage, of its rank that has most.
  ///
  /// measured   peaks by world rank. One rank that ran all stages of a plan is compared with nothing.
  void add_measured(const Measured& measured, const layout::Plan& plan);

  /// Writes the weights to `path` too.
  void add_weights(const train::Tensors& weights, const std::string& path);

  void add_stop(const Stop& stop);

  void add_evaluation(const StepLosses& losses);

  /// A file or folder that was written. name: `checkpoint`.
  void add_file(const std::string& name, const std::string& path);

  /// Prints all of it.
  void print(const Context& context);

 private:
  Json json_ = Json::object();
  std::string text_;
};

}  // namespace trireme::command
