#include "trireme/plan/sharding/sharding_show.h"

#include <fmt/format.h>

#include <cstddef>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/graph/graph_show.h"
#include "trireme/plan/graph/text_table.h"

namespace trireme::sharding {
namespace {

constexpr std::size_t kNameLength = 60;

std::string parameters_text(const Sharding& sharding, const graph::Graph& graph) {
  graph::Table table({"split parameter", "shape", ">dimension", ">blocks"});
  std::int64_t whole = 0, in_shard = 0;
  for (const graph::Parameter& parameter : graph.parameters) {
    const graph::Value& value = graph.values[parameter.value];
    const std::int64_t bytes = graph::bytes_at(value, 1);
    const auto split = sharding.splits.find(parameter.value);
    whole += bytes;
    in_shard += split == sharding.splits.end() ? bytes : bytes / sharding.num_shards;
    if (split == sharding.splits.end()) continue;
    table.add({graph::shortened(parameter.name, kNameLength), graph::to_text(value.shape),
               std::to_string(split->second.dim), std::to_string(split->second.blocks)});
  }
  return (table.is_empty() ? "" : "\n" + table.text()) +
         fmt::format("\nparameters: {} in each shard of {}\n", graph::bytes_text(in_shard),
                     graph::bytes_text(whole));
}

std::string tiles_text(const Sharding& sharding) {
  graph::Table table({"part", ">values", ">halos", ">sums forward", ">backward", ">Mflop",
                      ">taken of others", ">summed", ">saves"});
  double saved = 0;
  for (const ShardedPart& part : sharding.parts) {
    saved += part.seconds_saved;
    table.add({graph::shortened(part.name, kNameLength), std::to_string(sharding.splits.size()),
               std::to_string(part.halos.size()), std::to_string(part.sums.size()),
               std::to_string(part.taken.size()), fmt::format("{:.1f}", part.flops / 1e6),
               graph::bytes_text(part.halo_bytes), graph::bytes_text(part.sum_bytes),
               fmt::format("{:.3f} ms", part.seconds_saved * 1e3)});
  }
  return fmt::format("{} shards of rows, {:.3f} ms of a microbatch saved on each\n",
                     sharding.num_shards, saved * 1e3) +
         table.text();
}

}  // namespace

std::string show(const Sharding& sharding) {
  if (sharding.kind == SplitKind::kTiles && !sharding.parts.empty()) return tiles_text(sharding);
  if (sharding.parts.empty()) {
    return fmt::format("{} shards: nothing is split\n", sharding.num_shards);
  }
  graph::Table table({"part", ">sums forward", ">backward", ">Mflop", ">summed", ">saves"});
  double saved = 0;
  for (const ShardedPart& part : sharding.parts) {
    saved += part.seconds_saved;
    table.add({graph::shortened(part.name, kNameLength), std::to_string(part.sums.size()),
               std::to_string(part.taken.size()), fmt::format("{:.1f}", part.flops / 1e6),
               graph::bytes_text(part.sum_bytes),
               fmt::format("{:.3f} ms", part.seconds_saved * 1e3)});
  }
  return fmt::format("{} shards, {:.3f} ms of a microbatch saved on each\n", sharding.num_shards,
                     saved * 1e3) +
         table.text();
}

std::string show(const Sharding& sharding, const graph::Graph& graph) {
  return show(sharding) + parameters_text(sharding, graph);
}

std::string show(const ShardForecast& forecast, int num_shards) {
  return fmt::format(
      "whole model      {:.3f} ms of a microbatch, forward and backward\n"
      "each of {:<3} shards {:.3f} ms: computing {:.3f}, {} sums {:.3f}, {} halos {:.3f}\n",
      forecast.whole_seconds * 1e3, num_shards, forecast.seconds() * 1e3,
      forecast.compute_seconds * 1e3, forecast.num_sums, forecast.sum_seconds * 1e3,
      forecast.num_halos, forecast.halo_seconds * 1e3);
}

}  // namespace trireme::sharding
