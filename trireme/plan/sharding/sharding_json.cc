#include "trireme/plan/sharding/sharding_json.h"

#include <string>
#include <string_view>
#include <utility>

#include "trireme/base/load_document.h"
#include "trireme/error.h"

namespace trireme::sharding {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 60;

constexpr std::string_view kTilesName = "tiles";

/// A value and its split.
using SplitValue = std::pair<graph::ValueId, TensorSplit>;

SplitValue split_from_json(const JsonField& field) {
  JsonObject object(field);
  SplitValue split;
  split.first = object.required("value").index(0);
  split.second.dim = object.required("dim").index(0);
  split.second.blocks = object.required("blocks").integer(1, kMost);
  object.finish();
  return split;
}

Json to_json(const ShardedPart& part) {
  Json json = {{"name", part.name},           {"sums", part.sums},
               {"taken", part.taken},         {"flops", real_to_json(part.flops)},
               {"sum_bytes", part.sum_bytes}, {"seconds_saved", real_to_json(part.seconds_saved)}};
  if (part.halos.empty()) return json;
  json["halos"] = part.halos;
  json["halo_bytes"] = part.halo_bytes;
  return json;
}

ShardedPart part_from_json(const JsonField& field) {
  const auto index = [](const JsonField& item) { return item.index(0); };
  JsonObject object(field);
  ShardedPart part;
  part.name = object.required("name").text();
  part.sums = object.required("sums").list(index);
  part.taken = object.required("taken").list(index);
  part.flops = object.required("flops").real();
  part.sum_bytes = object.required("sum_bytes").integer(0, kMost);
  part.seconds_saved = object.required("seconds_saved").real();
  if (const auto halos = object.optional("halos")) {
    part.halos = halos->list(index);
    part.halo_bytes = object.required("halo_bytes").integer(0, kMost);
  }
  object.finish();
  return part;
}

}  // namespace

Json to_json(const Sharding& sharding) {
  Json json = {{"graph_sha256", sharding.graph_sha256},
               {"num_shards", sharding.num_shards},
               {"splits", Json::array()},
               {"parts", Json::array()}};
  for (const auto& [value, split] : sharding.splits) {
    json["splits"].push_back({{"value", value}, {"dim", split.dim}, {"blocks", split.blocks}});
  }
  if (sharding.kind == SplitKind::kTiles) json["kind"] = kTilesName;
  for (const ShardedPart& part : sharding.parts) json["parts"].push_back(to_json(part));
  return json;
}

Sharding sharding_from_json(const Json& body) {
  JsonObject object(JsonField(body, "sharding"));
  Sharding sharding;
  if (const auto kind = object.optional("kind")) {
    if (kind->text() != kTilesName) {
      throw Error(ErrorKind::kCorruptData, "sharding.kind: expected '" + std::string(kTilesName) +
                                               "', got '" + kind->text() + "'");
    }
    sharding.kind = SplitKind::kTiles;
  }
  sharding.graph_sha256 = object.required("graph_sha256").text();
  sharding.num_shards = object.required("num_shards").index(1);
  for (const auto& [value, split] : object.required("splits").list(split_from_json)) {
    if (sharding.splits.emplace(value, split).second) continue;
    throw Error(ErrorKind::kCorruptData,
                "sharding.splits: value " + std::to_string(value) + " is there twice");
  }
  sharding.parts = object.required("parts").list(part_from_json);
  object.finish();
  return sharding;
}

std::string save(const Sharding& sharding, const std::filesystem::path& path) {
  return write_document(path, kShardingDocument, to_json(sharding));
}

Sharding load_sharding(const std::filesystem::path& path) {
  return load_document(path, kShardingDocument, sharding_from_json);
}

}  // namespace trireme::sharding
