#include <fmt/format.h>

#include <cstdio>

#include "trireme/base/error.h"
#include "trireme/command/verbs.h"
#include "trireme/plan/graph/json.h"
#include "trireme/plan/layout/check.h"
#include "trireme/plan/layout/json.h"
#include "trireme/plan/layout/manual.h"

namespace trireme::command {

MakeWorkload Context::workload() const {
  if (model.empty() && workloads.size() == 1) return workloads.begin()->second;
  const auto found = workloads.find(model);
  if (found != workloads.end()) return found->second;
  std::string names;
  for (const auto& [name, make] : workloads) names += (names.empty() ? "" : ", ") + name;
  throw Error(ErrorKind::kInvalidArgument,
              names.empty()
                  ? "this program has no model; a program of your own gets the verbs from "
                    "trireme::run_command_line, see examples/01_own_model"
                  : fmt::format("--model '{}' is none of: {}", model, names));
}

void PlanOptions::add_to(CLI::App& app, bool with_file) {
  CLI::Option* plan = nullptr;
  if (with_file) {
    plan = app.add_option("--plan", file, "Plan file that `partition` wrote");
  }
  std::vector<CLI::Option*> own = {
      app.add_option("--batch", batch.global_batch, "Samples per step (B)"),
      app.add_option("--microbatch", batch.microbatch, "Samples per microbatch (b)"),
      app.add_option("--lanes", batch.lanes, "Data lanes (G)"),
      app.add_option("--cut-at", cuts, "Begin a stage at these nodes, by position or name")
          ->delimiter(','),
  };
  for (CLI::Option* option : own) {
    if (option->get_type_name() != "TEXT") option->capture_default_str();
    if (plan != nullptr) option->excludes(plan);
  }
}

int cut_position(const graph::Graph& graph, const std::string& cut) {
  const bool is_number = !cut.empty() && cut.size() < 9 &&
                         cut.find_first_not_of("0123456789") == std::string::npos;
  if (is_number) return std::stoi(cut);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].name == cut) return static_cast<int>(i);
  }
  throw Error(ErrorKind::kInvalidArgument,
              "--cut-at '" + cut + "' is neither a position nor the name of a node; `show graph` "
              "lists both");
}

layout::Plan PlanOptions::plan_for(const graph::Graph& graph) const {
  const std::string sha256 = graph::graph_sha256(graph);
  if (!file.empty()) {
    layout::Plan plan = layout::load(file);
    layout::check(plan, sha256, graph);
    return plan;
  }
  std::vector<int> positions;
  for (const std::string& cut : cuts) positions.push_back(cut_position(graph, cut));
  return layout::make_manual_plan(graph, sha256, positions, batch);
}

void print(const Context& context, const Json& json, const std::string& text) {
  const std::string out = context.json ? json.dump(2) + "\n" : text;
  std::fwrite(out.data(), 1, out.size(), stdout);
  std::fflush(stdout);
}

}  // namespace trireme::command
