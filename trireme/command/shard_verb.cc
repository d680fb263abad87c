#include <fmt/format.h>

#include <memory>

#include "trireme/arguments/numbers.h"
#include "trireme/command/verbs.h"
#include "trireme/plan.h"
#include "trireme/plan/sharding/find_sharding.h"
#include "trireme/plan/sharding/sharding_json.h"
#include "trireme/plan/sharding/sharding_show.h"

namespace trireme::command {
namespace {

struct ShardVerbOptions {
  std::string graph_file;  ///< Empty: the model is recorded.
  std::string out = "sharding.json";
  int shards = 2;
  std::int64_t microbatch = 8;
  double gflop_per_second = 50;
  double link_gb_per_second = 5;
  double link_us = 20;
};

Graph graph_of(const ShardVerbOptions& options, const Context& context) {
  if (!options.graph_file.empty()) return Graph::load(options.graph_file);
  return record_graph(context.workload(), options.microbatch, /*training=*/true, context.seed,
                      context.sizes);
}

int shard(const ShardVerbOptions& options, const Context& context) {
  const Graph graph = graph_of(options, context);
  const sharding::Sharding sharding = sharding::find_sharding(
      graph.value(), {.num_shards = options.shards,
                      .microbatch = options.microbatch,
                      .flops_per_second = options.gflop_per_second * 1e9,
                      .link_bytes_per_second = options.link_gb_per_second * 1e9,
                      .link_seconds = options.link_us / 1e6});
  const std::string sha256 = sharding::save(sharding, options.out);
  Json json = sharding::to_json(sharding);
  json["file"] = options.out;
  json["sha256"] = sha256;
  print(context, json,
        sharding::show(sharding, graph.value()) + fmt::format("\nwritten to {}\n", options.out));
  return 0;
}

}  // namespace

Body add_shard(CLI::App& app, Context& context) {
  auto options = std::make_shared<ShardVerbOptions>();
  app.add_option("--graph", options->graph_file, "Graph file; without it the model is recorded");
  app.add_option("--shards", options->shards, "Parts of each tensor that is split")
      ->check(arguments::positive())
      ->capture_default_str();
  app.add_option("--microbatch", options->microbatch, "Samples per microbatch (b)")
      ->check(arguments::positive())
      ->capture_default_str();
  app.add_option("--gflops", options->gflop_per_second,
                 "Of a rank in matrix products, in 1e9 a second")
      ->capture_default_str();
  app.add_option("--link-gb", options->link_gb_per_second,
                 "Of a rank to the others, in 1e9 bytes a second")
      ->capture_default_str();
  app.add_option("--link-us", options->link_us, "Of a sum over the shards, however small")
      ->capture_default_str();
  app.add_option("--out", options->out, "Where the sharding is written")->capture_default_str();
  app.footer(
      "Example: trireme shard --graph run/train.graph.json --shards 4\n"
      "Finds which tensors are worth splitting over ranks: time of products saved against time of "
      "sums. `trireme verify --shards 4` trains so and compares; `train` does not yet.");
  return [options, &context] { return shard(*options, context); };
}

}  // namespace trireme::command
