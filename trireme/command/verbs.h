#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trireme/base/json.h"
#include "trireme/engine/train/workload.h"
#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::command {

/// What every verb shares. A verb's file adds its options to a sub-command and returns what runs
/// it: parse, one call of the library, print.
struct Context {
  const std::map<std::string, MakeWorkload>& workloads;
  std::string model;  ///< --model
  std::uint64_t seed = 0;
  bool json = false;

  /// The workload that --model names, or the only one. kInvalidArgument where there is no such one.
  MakeWorkload workload() const;
};

/// A verb's body; returns the exit code.
using Body = std::function<int()>;

Body add_record(CLI::App& app, Context& context);
Body add_partition(CLI::App& app, Context& context);
Body add_train(CLI::App& app, Context& context);
Body add_verify(CLI::App& app, Context& context);
void add_show(CLI::App& app, Context& context, std::vector<std::pair<CLI::App*, Body>>& verbs);

/// --plan FILE, or --batch, --microbatch, --lanes and --cut-at in its place.
struct PlanOptions {
  std::string file;
  layout::BatchLayout batch{.global_batch = 32, .microbatch = 8, .lanes = 1};
  std::vector<std::string> cuts;
  std::vector<std::string> copies;

  void add_to(CLI::App& app, bool with_file);

  /// The plan of the file, or one made by hand; checked against the recorded graph.
  layout::Plan plan_for(const graph::Graph& recorded) const;
};

/// A node by its position or name, as a position. kInvalidArgument where there is none.
int node_position(const graph::Graph& graph, const std::string& node);

/// Standard output: `json` where it was asked for, else `text`.
void print(const Context& context, const Json& json, const std::string& text);

}  // namespace trireme::command
