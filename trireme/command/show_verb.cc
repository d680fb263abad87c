#include "trireme/base/document.h"
#include "trireme/command/verbs.h"
#include "trireme/plan/graph/file.h"
#include "trireme/plan/graph/json.h"
#include "trireme/plan/graph/show.h"
#include "trireme/plan/layout/check.h"
#include "trireme/plan/layout/json.h"
#include "trireme/plan/layout/planned_graph.h"
#include "trireme/plan/layout/show.h"

namespace trireme::command {
namespace {

Body add_graph(CLI::App& app, Context& context) {
  auto file = std::make_shared<std::string>();
  app.add_option("file", *file, "Graph file")->required();
  app.footer("Example: trireme show graph run/train.graph.json");
  return [file, &context] {
    const graph::Graph graph = graph::load(*file);
    print(context, graph::to_json(graph), graph::show(graph));
    return 0;
  };
}

Body add_plan(CLI::App& app, Context& context) {
  struct Options {
    std::string plan, graph;
  };
  auto options = std::make_shared<Options>();
  app.add_option("file", options->plan, "Plan file")->required();
  app.add_option("--graph", options->graph, "Graph file that the plan is of")->required();
  app.footer("Example: trireme show plan plan.json --graph run/train.graph.json");
  return [options, &context] {
    const layout::Plan plan = layout::load(options->plan);
    const graph::Graph recorded = graph::load(options->graph);
    const graph::Graph graph = layout::planned_graph(recorded, plan);
    layout::check(plan, graph::graph_sha256(recorded), graph);
    print(context, layout::to_json(plan), layout::show(plan, graph));
    return 0;
  };
}

}  // namespace

void add_show(CLI::App& app, Context& context, std::vector<std::pair<CLI::App*, Body>>& verbs) {
  app.require_subcommand(1);
  app.fallthrough();
  CLI::App* graph = app.add_subcommand("graph", "A recorded forward pass");
  verbs.emplace_back(graph, add_graph(*graph, context));
  CLI::App* plan = app.add_subcommand("plan", "Stages, batch and what limits them");
  verbs.emplace_back(plan, add_plan(*plan, context));
}

}  // namespace trireme::command
