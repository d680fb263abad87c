#include "trireme/plan/layout/parameter_map_json.h"

#include "trireme/base/load_document.h"
#include "trireme/error.h"

namespace trireme::layout {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 60;

std::int64_t read_elements(const JsonField& field) { return field.integer(0, kMaxElements); }

Json to_json(const Slot& slot) {
  return {{"parameter", slot.parameter},
          {"site", slot.site},
          {"offset_elements", slot.offset_elements},
          {"num_elements", slot.num_elements},
          {"first_norm_block", slot.first_norm_block}};
}

Slot slot_from_json(const JsonField& field) {
  JsonObject object(field);
  Slot slot;
  slot.parameter = object.required("parameter").text();
  slot.site = object.required("site").index(0);
  slot.offset_elements = read_elements(object.required("offset_elements"));
  slot.num_elements = read_elements(object.required("num_elements"));
  slot.first_norm_block = read_elements(object.required("first_norm_block"));
  object.finish();
  return slot;
}

Json to_json(const Shard& shard) {
  return {{"data_rank", shard.data_rank},
          {"begin_elements", shard.begin_elements},
          {"end_elements", shard.end_elements}};
}

Shard shard_from_json(const JsonField& field) {
  JsonObject object(field);
  Shard shard;
  shard.data_rank = object.required("data_rank").index(0);
  shard.begin_elements = read_elements(object.required("begin_elements"));
  shard.end_elements = read_elements(object.required("end_elements"));
  object.finish();
  return shard;
}

Json to_json(const Bucket& bucket) {
  Json json = {{"stage", bucket.stage},
               {"kind", kBucketKindNames[static_cast<std::size_t>(bucket.kind)]},
               {"dtype", trireme::to_text(bucket.dtype)},
               {"num_elements", bucket.num_elements},
               {"slots", Json::array()},
               {"shards", Json::array()}};
  for (const Slot& slot : bucket.slots) json["slots"].push_back(to_json(slot));
  for (const Shard& shard : bucket.shards) json["shards"].push_back(to_json(shard));
  return json;
}

Bucket bucket_from_json(const JsonField& field) {
  JsonObject object(field);
  Bucket bucket;
  bucket.stage = object.required("stage").index(0);
  bucket.kind = static_cast<BucketKind>(object.required("kind").choice(kBucketKindNames));
  bucket.dtype = dtype_from_json(object.required("dtype"));
  bucket.num_elements = read_elements(object.required("num_elements"));
  bucket.slots = object.required("slots").list(slot_from_json);
  bucket.shards = object.required("shards").list(shard_from_json);
  object.finish();
  return bucket;
}

}  // namespace

Json to_json(const ParameterMap& map) {
  Json json = {{"graph_sha256", map.graph_sha256},
               {"plan_sha256", map.plan_sha256},
               {"buckets", Json::array()}};
  for (const Bucket& bucket : map.buckets) json["buckets"].push_back(to_json(bucket));
  return json;
}

ParameterMap parameter_map_from_json(const Json& body) {
  JsonObject object(JsonField(body, "parameter map"));
  ParameterMap map;
  map.graph_sha256 = object.required("graph_sha256").text();
  map.plan_sha256 = object.required("plan_sha256").text();
  map.buckets = object.required("buckets").list(bucket_from_json);
  object.finish();
  return map;
}

std::string save(const ParameterMap& map, const std::filesystem::path& path) {
  return write_document(path, kParameterMapDocument, to_json(map));
}

ParameterMap load_parameter_map(const std::filesystem::path& path) {
  return load_document(path, kParameterMapDocument, parameter_map_from_json);
}

}  // namespace trireme::layout
