#include "trireme/plan/layout/plan_json.h"

#include "trireme/base/load_document.h"
#include "trireme/error.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/layout/plan_check.h"

namespace trireme::layout {
namespace {

int read_index(const JsonField& field) { return field.index(0); }

std::string read_text(const JsonField& field) { return field.text(); }

/// An object whose fields are whole numbers of any name.
std::map<std::string, std::int64_t> numbers_from_json(const JsonField& field) {
  if (!field.json().is_object()) field.fail_expected("an object of whole numbers");
  std::map<std::string, std::int64_t> numbers;
  for (const auto& [name, value] : field.json().items()) {
    numbers[name] = JsonField(value, field.place() + "." + name).integer();
  }
  return numbers;
}

Json to_json(const BatchLayout& batch) {
  return {{"global_batch", batch.global_batch},
          {"microbatch", batch.microbatch},
          {"lanes", batch.lanes}};
}

BatchLayout batch_from_json(const JsonField& field) {
  JsonObject object(field);
  const BatchLayout batch{object.required("global_batch").integer(1),
                          object.required("microbatch").integer(1),
                          object.required("lanes").integer(1)};
  object.finish();
  return batch;
}

Json to_json(const Role& role) {
  return {
      {"name", role.name},
      {"mesh",
       {{"pipeline", role.mesh.pipeline}, {"data", role.mesh.data}, {"shard", role.mesh.shard}}},
      {"placement", role.placement}};
}

Role role_from_json(const JsonField& field) {
  JsonObject object(field);
  Role role;
  role.name = object.required("name").text();
  JsonObject mesh(object.required("mesh"));
  role.mesh = {mesh.required("pipeline").index(1), mesh.required("data").index(1),
               mesh.required("shard").index(1)};
  mesh.finish();
  role.placement = object.required("placement").list(read_index);
  object.finish();
  return role;
}

Json to_json(const Stage& stage) {
  Json json = {{"begin", stage.begin}, {"end", stage.end}};
  if (stage.position) json["position"] = *stage.position;
  if (!stage.copies.empty()) json["copies"] = stage.copies;
  if (stage.recompute) json["recompute"] = true;
  if (!stage.regions.empty()) json["regions"] = stage.regions;
  if (stage.offload) json["offload"] = true;
  return json;
}

Stage stage_from_json(const JsonField& field) {
  JsonObject object(field);
  Stage stage;
  stage.begin = read_index(object.required("begin"));
  stage.end = read_index(object.required("end"));
  if (const auto position = object.optional("position")) stage.position = read_index(*position);
  if (const auto list = object.optional("copies")) stage.copies = list->list(read_index);
  if (const auto recompute = object.optional("recompute")) stage.recompute = recompute->boolean();
  if (const auto regions = object.optional("regions")) stage.regions = regions->list(read_index);
  if (const auto offload = object.optional("offload")) stage.offload = offload->boolean();
  object.finish();
  return stage;
}

ScheduleChoice schedule_from_json(const JsonField& field) {
  JsonObject object(field);
  ScheduleChoice schedule;
  schedule.name = object.required("name").text();
  if (const auto actions = object.optional("actions")) {
    schedule.actions = actions->list([](const JsonField& rank) { return rank.list(read_text); });
  }
  if (const auto parameters = object.optional("parameters")) {
    schedule.parameters = numbers_from_json(*parameters);
  }
  object.finish();
  return schedule;
}

Balance balance_from_json(const JsonField& field) {
  const std::string name = field.text();
  std::string known;
  for (const Balance one :
       {Balance::kSearch, Balance::kUniform, Balance::kParameters, Balance::kTree}) {
    if (name == balance_name(one)) return one;
    known += (known.empty() ? "" : ", ") + std::string(balance_name(one));
  }
  field.fail("expected one of " + known);
}

TieOwner tie_owner_from_json(const JsonField& field) {
  JsonObject object(field);
  TieOwner owner{object.required("parameter").text(), read_index(object.required("stage"))};
  object.finish();
  return owner;
}

Json to_json(const Prediction& prediction) {
  Json json = {{"step_ms", real_to_json(prediction.step_ms)},
               {"lower_bound_ms", real_to_json(prediction.lower_bound_ms)},
               {"peak_bytes", prediction.peak_bytes},
               {"limits", prediction.limits}};
  if (!prediction.expected_peak_bytes.empty()) {
    json["expected_peak_bytes"] = prediction.expected_peak_bytes;
  }
  return json;
}

Prediction prediction_from_json(const JsonField& field) {
  JsonObject object(field);
  Prediction prediction;
  prediction.step_ms = object.required("step_ms").real();
  prediction.lower_bound_ms = object.required("lower_bound_ms").real();
  prediction.peak_bytes = object.required("peak_bytes").list(numbers_from_json);
  if (const auto expected = object.optional("expected_peak_bytes")) {
    prediction.expected_peak_bytes =
        expected->list([](const JsonField& bytes) { return bytes.integer(0); });
  }
  prediction.limits = object.required("limits").list(read_text);
  object.finish();
  return prediction;
}

}  // namespace

Json to_json(const Plan& plan) {
  Json json = {
      {"graph_sha256", plan.graph_sha256},
      {"objective", plan.objective},
      {"batch", to_json(plan.batch)},
      {"roles", Json::array()},
      {"stages", Json::array()},
      {"schedule", {{"name", plan.schedule.name}, {"parameters", plan.schedule.parameters}}}};
  if (!plan.schedule.actions.empty()) json["schedule"]["actions"] = plan.schedule.actions;
  if (plan.balance != Balance::kSearch) json["balance"] = balance_name(plan.balance);
  if (plan.threads != 1) json["threads"] = plan.threads;
  if (plan.profile_sha256) json["profile_sha256"] = *plan.profile_sha256;
  if (plan.topology_sha256) json["topology_sha256"] = *plan.topology_sha256;
  for (const Role& role : plan.roles) json["roles"].push_back(to_json(role));
  if (!plan.node_order.empty()) json["node_order"] = plan.node_order;
  if (!plan.copied_nodes.empty()) json["copied_nodes"] = plan.copied_nodes;
  for (const Stage& stage : plan.stages) json["stages"].push_back(to_json(stage));
  for (const TieOwner& owner : plan.tie_owners) {
    json["tie_owners"].push_back({{"parameter", owner.parameter}, {"stage", owner.stage}});
  }
  if (plan.bucket_bytes != kUsualBucketBytes) json["bucket_bytes"] = plan.bucket_bytes;
  if (plan.sharded_state) json["sharded_state"] = true;
  if (plan.sharded_parameters) json["sharded_parameters"] = true;
  if (plan.prediction) json["prediction"] = to_json(*plan.prediction);
  return json;
}

Plan plan_from_json(const Json& body) {
  JsonObject object(JsonField(body, "plan"));
  Plan plan;
  plan.graph_sha256 = object.required("graph_sha256").text();
  if (const auto hash = object.optional("profile_sha256")) plan.profile_sha256 = hash->text();
  if (const auto hash = object.optional("topology_sha256")) plan.topology_sha256 = hash->text();
  plan.objective = object.required("objective").text();
  if (const auto balance = object.optional("balance")) plan.balance = balance_from_json(*balance);
  plan.batch = batch_from_json(object.required("batch"));
  if (const auto threads = object.optional("threads")) plan.threads = threads->index(1);
  plan.roles = object.required("roles").list(role_from_json);
  if (const auto order = object.optional("node_order")) plan.node_order = order->list(read_index);
  if (const auto copied = object.optional("copied_nodes")) {
    plan.copied_nodes = copied->list(read_index);
  }
  plan.stages = object.required("stages").list(stage_from_json);
  plan.schedule = schedule_from_json(object.required("schedule"));
  if (const auto owners = object.optional("tie_owners")) {
    plan.tie_owners = owners->list(tie_owner_from_json);
  }
  if (const auto bytes = object.optional("bucket_bytes")) plan.bucket_bytes = bytes->integer(1);
  if (const auto sharded = object.optional("sharded_state")) {
    plan.sharded_state = sharded->boolean();
  }
  if (const auto sharded = object.optional("sharded_parameters")) {
    plan.sharded_parameters = sharded->boolean();
  }
  if (const auto prediction = object.optional("prediction")) {
    plan.prediction = prediction_from_json(*prediction);
  }
  object.finish();
  return plan;
}

std::string plan_sha256(const Plan& plan) { return document_sha256(kPlanDocument, to_json(plan)); }

std::string save(const Plan& plan, const std::filesystem::path& path) {
  return write_document(path, kPlanDocument, to_json(plan));
}

Plan load(const std::filesystem::path& path) {
  return load_document(path, kPlanDocument, plan_from_json);
}

Plan load(const std::filesystem::path& path, const graph::Graph& recorded) {
  Plan plan = load(path);
  try {
    checked_graph(recorded, plan);
  } catch (const Error& error) {
    throw Error(error.kind(), "'" + path.string() + "': " + error.message());
  }
  return plan;
}

}  // namespace trireme::layout
