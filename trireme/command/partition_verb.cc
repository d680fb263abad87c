#include <fmt/format.h>

#include "trireme/command/verbs.h"
#include "trireme/engine/train/construct.h"
#include "trireme/plan/graph/file.h"
#include "trireme/plan/layout/json.h"
#include "trireme/plan/layout/planned_graph.h"
#include "trireme/plan/layout/show.h"

namespace trireme::command {

Body add_partition(CLI::App& app, Context& context) {
  struct Options {
    std::string graph_file;
    std::string out = "plan.json";
    PlanOptions plan;
  };
  auto options = std::make_shared<Options>();
  app.add_option("--graph", options->graph_file, "Graph file; without it the model is recorded");
  app.add_option("--out", options->out, "Where the plan is written")->capture_default_str();
  options->plan.add_to(app, /*with_file=*/false);
  app.footer("Example: trireme partition --graph run/train.graph.json --cut-at 12,31 --batch 64");
  return [options, &context] {
    graph::Graph graph;
    if (!options->graph_file.empty()) {
      graph = graph::load(options->graph_file);
    } else {
      const Workload workload = train::construct(context.workload(), context.seed);
      const train::BatchReader reader(workload.training, workload.model);
      graph = record::record(workload.model, reader.maker(), graph::Mode::kTrain).graph;
    }
    const layout::Plan plan = options->plan.plan_for(graph);
    const std::string sha256 = layout::save(plan, options->out);
    print(context,
          {{"file", options->out},
           {"sha256", sha256},
           {"graph_sha256", plan.graph_sha256},
           {"stages", plan.stages.size()}},
          layout::show(plan, layout::planned_graph(graph, plan)) +
              fmt::format("\nwritten to {}\n", options->out));
    return 0;
  };
}

}  // namespace trireme::command
