#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "trireme/arguments/numbers.h"
#include "trireme/base/files.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::command {
namespace {

struct Summary {
  Json json;
  std::string text;
};

Summary summarize(const graph::Graph& graph, const std::string& path, const std::string& sha256) {
  const std::vector<bool> cuts = graph::allowed_cuts(graph);
  const auto num_cuts = std::count(cuts.begin(), cuts.end(), true);
  const auto num_random = std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                        [](const graph::Node& n) { return n.flags.random; });
  const auto sites = graph::use_sites(graph);
  const auto num_ties = std::count_if(sites.begin(), sites.end(),
                                      [](const graph::UseSite& s) { return s.site == 1; });
  return {{{"file", path},
           {"sha256", sha256},
           {"graph_sha256", graph::graph_sha256(graph)},
           {"nodes", graph.nodes.size()},
           {"parameters", graph.parameters.size()},
           {"tied_parameters", num_ties},
           {"buffers", graph.buffers.size()},
           {"random_nodes", num_random},
           {"allowed_cuts", num_cuts}},
          fmt::format("{}: {} nodes, {} allowed cuts, {} parameters ({} tied), {} buffers, {} "
                      "random nodes\n",
                      path, graph.nodes.size(), num_cuts, graph.parameters.size(), num_ties,
                      graph.buffers.size(), num_random)};
}

}  // namespace

Body add_record(CLI::App& app, Context& context) {
  struct RecordVerbOptions {
    std::string folder = ".";
    std::int64_t microbatch = 8;
  };
  auto options = std::make_shared<RecordVerbOptions>();
  app.add_option("--out", options->folder, "Folder for train.graph.json and eval.graph.json")
      ->capture_default_str();
  app.add_option("--microbatch", options->microbatch,
                 "Samples per microbatch (b), for a model whose code differs with the batch size")
      ->check(arguments::positive())
      ->capture_default_str();
  app.footer("Example: trireme record --out run");
  return [options, &context] {
    const Workload workload = train::construct(context.workload(), context.seed);
    make_folder(options->folder);
    Json json;
    std::string text;
    for (const auto& [mode, name] :
         {std::pair{graph::Mode::kTrain, "train"}, std::pair{graph::Mode::kEval, "eval"}}) {
      const auto recording = record_model(context, workload, mode, options->microbatch);
      const auto path =
          std::filesystem::path(options->folder) / (std::string(name) + ".graph.json");
      const std::string sha256 = graph::save(recording.graph, path);
      const Summary summary = summarize(recording.graph, path.string(), sha256);
      json[name] = summary.json;
      text += summary.text;
      const auto unused = graph::unused_parameters(recording.graph);
      json[name]["unused_parameters"] = unused;
      if (!unused.empty() && mode == graph::Mode::kTrain) {
        text += fmt::format("never trained, since the loss depends on no use of them: {}\n",
                            fmt::join(unused, ", "));
      }
    }
    print(context, json, text);
    return 0;
  };
}

}  // namespace trireme::command
