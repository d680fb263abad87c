#include <fmt/format.h>

#include <memory>
#include <optional>

#include "trireme/arguments/numbers.h"
#include "trireme/command/verbs.h"
#include "trireme/plan.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/sharding/find_sharding.h"
#include "trireme/plan/sharding/find_tiles.h"
#include "trireme/plan/sharding/shard_forecast.h"
#include "trireme/plan/sharding/sharding_json.h"
#include "trireme/plan/sharding/sharding_show.h"

namespace trireme::command {
namespace {

struct ShardVerbOptions {
  std::string graph_file;    ///< Empty: the model is recorded.
  std::string profile_file;  ///< Empty: times are those of products.
  bool spatial = false;
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

/// Measured times where there is a profile, else those of products; messages by the rates that were given.
sharding::ShardForecast forecast_of(const std::optional<Profile>& profile, const Graph& graph,
                                    const sharding::Sharding& sharding,
                                    const sharding::ShardingOptions& rates) {
  sharding::ShardCosts costs{.microbatch = rates.microbatch,
                             .node_seconds = {},
                             .message_seconds = [rates](std::int64_t bytes) {
                               return rates.link_seconds +
                                      static_cast<double>(bytes) / rates.link_bytes_per_second;
                             }};
  if (!profile) {
    costs.node_seconds = sharding::product_seconds(graph.value(), rates);
    return sharding::forecast(graph.value(), sharding, costs);
  }
  for (const profile::NodeTime& time : profile::node_times(profile->value(), graph.value())) {
    costs.node_seconds.push_back((time.forward_us + time.backward_us()) / 1e6);
  }
  return sharding::forecast(graph.value(), sharding, costs);
}

Json to_json(const sharding::ShardForecast& forecast) {
  return {{"whole_ms", forecast.whole_seconds * 1e3},     {"shard_ms", forecast.seconds() * 1e3},
          {"compute_ms", forecast.compute_seconds * 1e3}, {"sums", forecast.num_sums},
          {"sum_ms", forecast.sum_seconds * 1e3},         {"halos", forecast.num_halos},
          {"halo_ms", forecast.halo_seconds * 1e3}};
}

int shard(const ShardVerbOptions& options, const Context& context) {
  const Graph graph = graph_of(options, context);
  std::optional<Profile> profile;
  if (!options.profile_file.empty()) profile = Profile::load(options.profile_file, graph);
  const sharding::ShardingOptions rates{
      .num_shards = options.shards,
      .microbatch = profile ? profile->microbatch() : options.microbatch,
      .flops_per_second = options.gflop_per_second * 1e9,
      .link_bytes_per_second = options.link_gb_per_second * 1e9,
      .link_seconds = options.link_us / 1e6};
  const sharding::Sharding sharding = options.spatial
                                          ? sharding::find_tiles(graph.value(), rates)
                                          : sharding::find_sharding(graph.value(), rates);
  const std::string sha256 = sharding::save(sharding, options.out);
  const sharding::ShardForecast forecast = forecast_of(profile, graph, sharding, rates);
  Json json = sharding::to_json(sharding);
  json["file"] = options.out;
  json["sha256"] = sha256;
  json["forecast"] = to_json(forecast);
  print(context, json,
        sharding::show(sharding, graph.value()) + "\n" + sharding::show(forecast, options.shards) +
            fmt::format("\nwritten to {}\n", options.out));
  return 0;
}

}  // namespace

Body add_shard(CLI::App& app, Context& context) {
  auto options = std::make_shared<ShardVerbOptions>();
  app.add_option("--graph", options->graph_file, "Graph file; without it the model is recorded");
  app.add_option(
      "--profile", options->profile_file,
      "Profile that `profile` wrote: costs are at its microbatch, and the forecast is of all "
      "operators; without it of products alone");
  app.add_flag(
      "--spatial", options->spatial,
      "Split rows of images and slices of volumes, with halos between shards, in the place "
      "of weights");
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
