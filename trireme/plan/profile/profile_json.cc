#include "trireme/plan/profile/profile_json.h"

#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"

namespace trireme::profile {
namespace {

int read_index(const JsonField& field) { return field.index(0); }

Json to_json(const NodeCost& cost) {
  Json json = {{"key", cost.key},
               {"forward_us", real_to_json(cost.forward_us)},
               {"input_us", real_to_json(cost.input_us)},
               {"weight_us", real_to_json(cost.weight_us)},
               {"spread", real_to_json(cost.spread)},
               {"kept_bytes", cost.kept_bytes},
               {"forward_workspace_bytes", cost.forward_workspace_bytes},
               {"backward_workspace_bytes", cost.backward_workspace_bytes}};
  if (!cost.saved_inputs.empty()) json["saved_inputs"] = cost.saved_inputs;
  if (!cost.saved_outputs.empty()) json["saved_outputs"] = cost.saved_outputs;
  return json;
}

NodeCost cost_from_json(const JsonField& field) {
  JsonObject object(field);
  NodeCost cost;
  cost.key = object.required("key").text();
  cost.forward_us = object.required("forward_us").real();
  cost.input_us = object.required("input_us").real();
  cost.weight_us = object.required("weight_us").real();
  cost.spread = object.required("spread").real();
  if (const auto list = object.optional("saved_inputs")) cost.saved_inputs = list->list(read_index);
  if (const auto list = object.optional("saved_outputs")) {
    cost.saved_outputs = list->list(read_index);
  }
  cost.kept_bytes = object.required("kept_bytes").integer(0);
  cost.forward_workspace_bytes = object.required("forward_workspace_bytes").integer(0);
  cost.backward_workspace_bytes = object.required("backward_workspace_bytes").integer(0);
  object.finish();
  return cost;
}

Json to_json(const RangeTime& range) {
  return {{"begin", range.begin},
          {"end", range.end},
          {"forward_us", real_to_json(range.forward_us)},
          {"backward_us", real_to_json(range.backward_us)}};
}

RangeTime range_from_json(const JsonField& field) {
  JsonObject object(field);
  const RangeTime range{object.required("begin").index(0), object.required("end").index(0),
                        object.required("forward_us").real(),
                        object.required("backward_us").real()};
  object.finish();
  return range;
}

Json to_json(const HeldTimes& held) {
  return {{"one_bytes", held.one_bytes},
          {"held_bytes", held.held_bytes},
          {"forward", real_to_json(held.forward)},
          {"backward", real_to_json(held.backward)}};
}

HeldTimes held_from_json(const JsonField& field) {
  JsonObject object(field);
  const HeldTimes held{object.required("one_bytes").integer(0),
                       object.required("held_bytes").integer(0), object.required("forward").real(),
                       object.required("backward").real()};
  object.finish();
  return held;
}

Json to_json(const UncapturedTimes& uncaptured) {
  return {{"forward", real_to_json(uncaptured.forward)},
          {"backward", real_to_json(uncaptured.backward)}};
}

UncapturedTimes uncaptured_from_json(const JsonField& field) {
  JsonObject object(field);
  const UncapturedTimes uncaptured{object.required("forward").real(),
                                   object.required("backward").real()};
  object.finish();
  return uncaptured;
}

LinkTime link_time_from_json(const JsonField& field) {
  JsonObject object(field);
  const LinkTime time{object.required("bytes").integer(0), object.required("alone_us").real(),
                      object.required("beside_compute_us").real()};
  object.finish();
  return time;
}

Json to_json(const LinkTable& table) {
  Json json = {{"kind", to_text(table.kind)}, {"times", Json::array()}};
  for (const LinkTime& time : table.times) {
    json["times"].push_back({{"bytes", time.bytes},
                             {"alone_us", real_to_json(time.alone_us)},
                             {"beside_compute_us", real_to_json(time.beside_compute_us)}});
  }
  return json;
}

LinkTable table_from_json(const JsonField& field) {
  JsonObject object(field);
  LinkTable table{static_cast<LinkKind>(object.required("kind").choice(kLinkKindNames)),
                  object.required("times").list(link_time_from_json)};
  object.finish();
  return table;
}

Json to_json(const Hardware& hardware) {
  return {{"processor", hardware.processor},
          {"num_cores", hardware.num_cores},
          {"instruction_set", hardware.instruction_set},
          {"torch_version", hardware.torch_version}};
}

Hardware hardware_from_json(const JsonField& field) {
  JsonObject object(field);
  Hardware hardware;
  hardware.processor = object.required("processor").text();
  hardware.num_cores = object.required("num_cores").index(0);
  hardware.instruction_set = object.required("instruction_set").text();
  hardware.torch_version = object.required("torch_version").text();
  object.finish();
  return hardware;
}

Json to_json(const MessageWork& work) {
  return {{"bytes", work.bytes}, {"us", real_to_json(work.us)}};
}

MessageWork message_work_from_json(const JsonField& field) {
  JsonObject object(field);
  const MessageWork work{object.required("bytes").integer(), object.required("us").real()};
  object.finish();
  return work;
}

Json to_json(const StepCosts& step) {
  Json json = {{"optimizer_ns", real_to_json(step.optimizer_ns)},
               {"fold_ns", real_to_json(step.fold_ns)},
               {"copy_ns_per_byte", real_to_json(step.copy_ns_per_byte)}};
  if (step.read_us > 0) json["read_us"] = real_to_json(step.read_us);
  for (const MessageWork& work : step.messages) json["messages"].push_back(to_json(work));
  if (step.file) {
    json["file"] = {{"write_ns_per_byte", real_to_json(step.file->write_ns_per_byte)},
                    {"read_ns_per_byte", real_to_json(step.file->read_ns_per_byte)}};
  }
  return json;
}

FileCosts file_from_json(const JsonField& field) {
  JsonObject object(field);
  const FileCosts file{object.required("write_ns_per_byte").real(),
                       object.required("read_ns_per_byte").real()};
  object.finish();
  return file;
}

StepCosts step_from_json(const JsonField& field) {
  JsonObject object(field);
  StepCosts step{object.required("optimizer_ns").real(), object.required("fold_ns").real(),
                 object.required("copy_ns_per_byte").real()};
  if (const auto read = object.optional("read_us")) step.read_us = read->real();
  if (const auto messages = object.optional("messages")) {
    step.messages = messages->list(message_work_from_json);
  }
  if (const auto file = object.optional("file")) step.file = file_from_json(*file);
  object.finish();
  return step;
}

}  // namespace

Json to_json(const Profile& profile) {
  Json json = {{"graph_sha256", profile.graph_sha256},
               {"microbatch", profile.microbatch},
               {"num_busy_ranks", profile.num_busy_ranks},
               {"hardware", to_json(profile.hardware)},
               {"costs", Json::array()},
               {"cost_of", profile.cost_of},
               {"ranges", Json::array()},
               {"links", Json::array()},
               {"step", to_json(profile.step)}};
  if (profile.threads != 1) json["threads"] = profile.threads;
  for (const NodeCost& cost : profile.costs) json["costs"].push_back(to_json(cost));
  for (const RangeTime& range : profile.ranges) json["ranges"].push_back(to_json(range));
  if (profile.held) json["held"] = to_json(*profile.held);
  if (profile.uncaptured) json["uncaptured"] = to_json(*profile.uncaptured);
  for (const LinkTable& table : profile.links) json["links"].push_back(to_json(table));
  return json;
}

Profile profile_from_json(const Json& body) {
  JsonObject object(JsonField(body, "profile"));
  Profile profile;
  profile.graph_sha256 = object.required("graph_sha256").text();
  profile.microbatch = object.required("microbatch").integer(1);
  profile.num_busy_ranks = object.required("num_busy_ranks").index(1);
  if (const auto threads = object.optional("threads")) profile.threads = threads->index(1);
  profile.hardware = hardware_from_json(object.required("hardware"));
  profile.costs = object.required("costs").list(cost_from_json);
  profile.cost_of = object.required("cost_of").list(read_index);
  profile.ranges = object.required("ranges").list(range_from_json);
  if (const auto held = object.optional("held")) profile.held = held_from_json(*held);
  if (const auto times = object.optional("uncaptured")) {
    profile.uncaptured = uncaptured_from_json(*times);
  }
  profile.links = object.required("links").list(table_from_json);
  profile.step = step_from_json(object.required("step"));
  object.finish();
  return profile;
}

std::string profile_sha256(const Profile& profile) {
  return document_sha256(kProfileDocument, to_json(profile));
}

std::string save(const Profile& profile, const std::filesystem::path& path) {
  return write_document(path, kProfileDocument, to_json(profile));
}

Profile load(const std::filesystem::path& path) {
  const Json body = read_document(path, kProfileDocument);
  try {
    Profile profile = profile_from_json(body);
    check_contents(profile);
    return profile;
  } catch (const Error& error) {
    throw Error(ErrorKind::kCorruptData, "'" + path.string() + "': " + error.message());
  }
}

Profile load(const std::filesystem::path& path, const graph::Graph& recorded) {
  Profile profile = load(path);
  try {
    check_same_graph(profile, graph::graph_sha256(recorded));
    check(profile, recorded);
  } catch (const Error& error) {
    throw Error(error.kind(), "'" + path.string() + "': " + error.message());
  }
  return profile;
}

}  // namespace trireme::profile
