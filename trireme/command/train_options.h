#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "trireme/command/run_options.h"
#include "trireme/command/training_report.h"
#include "trireme/command/verbs.h"
#include "trireme/session.h"

namespace trireme::command {

/// What `train` is asked for.
struct TrainOptions {
  PlanArguments plan;  ///< Its options become those of `session`.
  ReportOptions report;
  std::string save;
  std::string timeline;
  SessionOptions session;
  std::vector<std::string> buffers;  ///< --buffer, for `session`.
  std::vector<std::string> renamed;  ///< --init-rename, likewise.
  int restarts = 0;

  /// Processes to start: those that train and those that read.
  int num_processes() const { return plan.num_ranks() + session.reader_ranks; }

  /// Whether a training that is stopped leaves what it has learnt.
  bool keeps_something() const { return !session.run.folder.empty() || !save.empty(); }
};

/// Options of `train`, in groups.
void add_train_options(CLI::App& app, TrainOptions& options);

/// From texts `OLD=NEW`. kInvalidArgument for any other.
std::vector<std::pair<std::string, std::string>> parse_renames(
    const std::vector<std::string>& texts);

}  // namespace trireme::command
