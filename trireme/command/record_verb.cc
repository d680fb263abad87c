#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "trireme/arguments/numbers.h"
#include "trireme/base/files.h"
#include "trireme/command/verbs.h"

namespace trireme::command {
namespace {

struct Summary {
  Json json;
  std::string text;
};

Summary summarize(const Graph& graph, const std::string& path, const std::string& sha256) {
  const std::size_t num_nodes = graph.node_names().size(), num_cuts = graph.allowed_cuts().size(),
                    num_parameters = graph.parameter_names().size(),
                    num_ties = graph.tied_parameters().size(),
                    num_buffers = graph.buffer_names().size(),
                    num_random = graph.random_nodes().size();
  return {
      {{"file", path},
       {"sha256", sha256},
       {"graph_sha256", graph.sha256()},
       {"nodes", num_nodes},
       {"parameters", num_parameters},
       {"tied_parameters", num_ties},
       {"buffers", num_buffers},
       {"random_nodes", num_random},
       {"allowed_cuts", num_cuts},
       {"unused_parameters", graph.unused_parameters()}},
      fmt::format("{}: {} nodes, {} allowed cuts, {} parameters ({} tied), {} buffers, {} "
                  "random nodes\n",
                  path, num_nodes, num_cuts, num_parameters, num_ties, num_buffers, num_random)};
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
    make_folder(options->folder);
    Json json;
    std::string text;
    for (const std::string name : {"train", "eval"}) {
      const bool trains = name == "train";
      const Graph graph = record_graph(context.workload(), options->microbatch, trains,
                                       context.seed, context.sizes);
      const auto path = std::filesystem::path(options->folder) / (name + ".graph.json");
      const Summary summary = summarize(graph, path.string(), graph.save(path));
      json[name] = summary.json;
      text += summary.text;
      const std::vector<std::string> unused = graph.unused_parameters();
      if (trains && !unused.empty()) {
        text += fmt::format("never trained, since the loss depends on no use of them: {}\n",
                            fmt::join(unused, ", "));
      }
    }
    print(context, json, text);
    return 0;
  };
}

}  // namespace trireme::command
