#include "trireme/plan/graph/node_json.h"

#include <algorithm>
#include <array>

#include "trireme/plan/graph/argument_json.h"

namespace trireme::graph::internal {
namespace {

// Indexed by ValueSource.
constexpr std::array<std::string_view, 6> kSources = {"input",  "step_scalar", "parameter",
                                                      "buffer", "constant",    "node"};

/// Flags are written as the list of those that differ from a plain node.
struct FlagName {
  std::string_view name;
  bool NodeFlags::* flag;
  bool plain;
};
constexpr std::array<FlagName, 4> kFlags = {
    {{"no_grad", &NodeFlags::grad_mode, true},
     {"random", &NodeFlags::random, false},
     {"view", &NodeFlags::view, false},
     {"batch_dependent", &NodeFlags::batch_dependent, false}}};

Json to_json(const std::vector<Size>& sizes) {
  Json json = Json::array();
  for (const Size& size : sizes) json.push_back(graph::to_json(size));
  return json;
}

Json to_json(const NodeFlags& flags) {
  Json json = Json::array();
  for (const FlagName& entry : kFlags) {
    if (flags.*entry.flag != entry.plain) json.push_back(entry.name);
  }
  return json;
}

NodeFlags flags_from_json(const JsonField& field) {
  std::array<std::string_view, kFlags.size()> names;
  std::transform(kFlags.begin(), kFlags.end(), names.begin(),
                 [](const FlagName& entry) { return entry.name; });
  NodeFlags flags;
  for (const JsonField& item : field.items()) {
    const FlagName& entry = kFlags[item.choice(names)];
    flags.*entry.flag = !entry.plain;
  }
  return flags;
}

Json outputs_to_json(const std::vector<ValueId>& outputs) {
  Json json = Json::array();
  for (const ValueId id : outputs) json.push_back(id == -1 ? Json(nullptr) : Json(id));
  return json;
}

int read_id(const JsonField& field) { return field.index(0, kMaxId); }

ValueId output_from_json(const JsonField& field) {
  return field.json().is_null() ? -1 : read_id(field);
}

Autocast autocast_from_json(const JsonField& field) {
  JsonObject object(field);
  Autocast autocast{object.required("device").text(), dtype_from_json(object.required("dtype"))};
  object.finish();
  return autocast;
}

}  // namespace

Json to_json(const Value& value) {
  Json json = {{"source", kSources[static_cast<std::size_t>(value.source)]},
               {"dtype", trireme::to_text(value.dtype)},
               {"shape", to_json(value.shape)},
               {"strides", to_json(value.strides)},
               {"storage", value.storage_id}};
  if (value.source == ValueSource::kNode) json["producer"] = value.producer;
  if (value.requires_grad) json["requires_grad"] = true;
  if (value.is_ragged) json["ragged"] = true;
  return json;
}

Value value_from_json(const JsonField& field) {
  JsonObject object(field);
  Value value;
  value.source = static_cast<ValueSource>(object.required("source").choice(kSources));
  if (value.source == ValueSource::kNode) value.producer = read_id(object.required("producer"));
  value.dtype = dtype_from_json(object.required("dtype"));
  value.shape = object.required("shape").list(size_from_json);
  value.strides = object.required("strides").list(size_from_json);
  if (const auto flag = object.optional("requires_grad")) value.requires_grad = flag->boolean();
  if (const auto flag = object.optional("ragged")) value.is_ragged = flag->boolean();
  value.storage_id = read_id(object.required("storage"));
  object.finish();
  return value;
}

Json to_json(const Node& node) {
  Json json = {{"id", node.id},           {"name", node.name},
               {"op", node.op},           {"overload", node.overload},
               {"inputs", Json::array()}, {"outputs", outputs_to_json(node.outputs)}};
  for (const Argument& argument : node.inputs) json["inputs"].push_back(graph::to_json(argument));
  const bool has_lists = std::any_of(node.output_lists.begin(), node.output_lists.end(),
                                     [](int length) { return length != -1; });
  if (has_lists) json["output_lists"] = node.output_lists;
  if (!node.writes.empty()) json["writes"] = node.writes;
  if (Json flags = to_json(node.flags); !flags.empty()) json["flags"] = std::move(flags);
  if (node.autocast) {
    json["autocast"] = {{"device", node.autocast->device},
                        {"dtype", trireme::to_text(node.autocast->dtype)}};
  }
  if (node.copy_of != -1) json["copy_of"] = node.copy_of;
  return json;
}

Node node_from_json(const JsonField& field) {
  JsonObject object(field);
  Node node;
  node.id = read_id(object.required("id"));
  node.name = object.required("name").text();
  node.op = object.required("op").text();
  node.overload = object.required("overload").text();
  node.inputs = object.required("inputs").list(argument_from_json);
  node.outputs = object.required("outputs").list(output_from_json);
  if (const auto lists = object.optional("output_lists")) {
    node.output_lists = lists->list([](const JsonField& item) { return item.index(-1, kMaxId); });
  } else {
    node.output_lists.assign(node.outputs.size(), -1);
  }
  if (const auto writes = object.optional("writes")) node.writes = writes->list(read_id);
  if (const auto flags = object.optional("flags")) node.flags = flags_from_json(*flags);
  if (const auto autocast = object.optional("autocast")) {
    node.autocast = autocast_from_json(*autocast);
  }
  if (const auto original = object.optional("copy_of")) node.copy_of = read_id(*original);
  object.finish();
  return node;
}

}  // namespace trireme::graph::internal
