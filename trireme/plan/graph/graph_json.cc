#include "trireme/plan/graph/graph_json.h"

#include <array>
#include <map>

#include "trireme/base/files.h"
#include "trireme/base/safetensors.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_check.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/graph/node_json.h"

namespace trireme::graph {
namespace {

constexpr std::array<std::string_view, 2> kModes = {"train", "eval"};
constexpr std::array<std::string_view, 4> kPolicies = {"read_only", "batch_norm", "counter",
                                                       "eager"};

int read_id(const JsonField& field) { return field.index(0, internal::kMaxId); }

/// The fields that parameters and buffers have in common.
template <typename State>
Json state_to_json(const State& state) {
  Json json = {{"name", state.name}, {"value", state.value}};
  if (!state.aliases.empty()) json["aliases"] = state.aliases;
  return json;
}

template <typename State>
State state_from_json(JsonObject& object) {
  State state;
  state.name = object.required("name").text();
  state.value = read_id(object.required("value"));
  if (const auto aliases = object.optional("aliases")) {
    state.aliases = aliases->list([](const JsonField& item) { return item.text(); });
  }
  return state;
}

Json to_json(const LossOutput& loss) {
  Json json = {
      {"name", loss.name}, {"value", loss.value}, {"coefficient", real_to_json(loss.coefficient)}};
  if (loss.weight) json["weight"] = *loss.weight;
  return json;
}

Output output_from_json(const JsonField& field) {
  JsonObject object(field);
  Output output{object.required("name").text(), read_id(object.required("value"))};
  object.finish();
  return output;
}

LossOutput loss_from_json(const JsonField& field) {
  JsonObject object(field);
  LossOutput loss;
  loss.name = object.required("name").text();
  loss.value = read_id(object.required("value"));
  if (const auto weight = object.optional("weight")) loss.weight = read_id(*weight);
  if (const auto number = object.optional("coefficient")) loss.coefficient = number->real();
  object.finish();
  return loss;
}

Input input_from_json(const JsonField& field) {
  JsonObject object(field);
  Input input;
  input.name = object.required("name").text();
  input.value = read_id(object.required("value"));
  input.batch_dim = object.required("batch_dim").index(-1, internal::kMaxId);
  object.finish();
  return input;
}

Parameter parameter_from_json(const JsonField& field) {
  JsonObject object(field);
  auto parameter = state_from_json<Parameter>(object);
  object.finish();
  return parameter;
}

Buffer buffer_from_json(const JsonField& field) {
  JsonObject object(field);
  auto buffer = state_from_json<Buffer>(object);
  buffer.policy = static_cast<BufferPolicy>(object.required("policy").choice(kPolicies));
  object.finish();
  return buffer;
}

Json constants_to_json(const Graph& graph) {
  Json values = Json::array();
  for (const ConstantTensor& constant : graph.constants) values.push_back(constant.value);
  return {{"sha256", sha256(constants_file(graph))}, {"values", std::move(values)}};
}

/// What follows from the graph, listed for readers.
Json derived_to_json(const Graph& graph) {
  Json sites = Json::array();
  for (const UseSite& site : use_sites(graph)) {
    sites.push_back({{"parameter", graph.parameters[site.parameter].name},
                     {"site", site.site},
                     {"nodes", site.nodes}});
  }
  Json ties = Json::array();
  const auto add_tie = [&ties](const auto& state) {
    if (state.aliases.empty()) return;
    Json names = state.aliases;
    names.insert(names.begin(), state.name);
    ties.push_back(std::move(names));
  };
  for (const Parameter& parameter : graph.parameters) add_tie(parameter);
  for (const Buffer& buffer : graph.buffers) add_tie(buffer);
  Json cuts = Json::array();
  const std::vector<bool> allowed = allowed_cuts(graph);
  for (std::size_t cut = 0; cut < allowed.size(); ++cut) {
    if (allowed[cut]) cuts.push_back(cut);
  }
  return {{"use_sites", std::move(sites)},
          {"tie_groups", std::move(ties)},
          {"allowed_cuts", std::move(cuts)}};
}

std::vector<std::int64_t> fixed_shape(const Value& value) {
  std::vector<std::int64_t> shape;
  for (const Size& size : value.shape) shape.push_back(size.fixed);
  return shape;
}

/// Fills the constants' data from their file.
void read_constants(Graph& graph, const JsonField& field, std::span<const std::byte> file) {
  JsonObject object(field);
  const std::string claimed = object.required("sha256").text();
  const std::vector<ValueId> ids = object.required("values").list(read_id);
  object.finish();
  const std::string actual = sha256(file);
  if (actual != claimed) {
    field.fail("its data is of another graph or damaged: expected the sha256 " +
               claimed.substr(0, 64) + ", got " + actual +
               "; keep the .safetensors file beside its .json");
  }
  const safetensors::Content content = safetensors::parse(file, field.place());
  if (content.tensors.size() != ids.size()) {
    field.fail("expected " + std::to_string(ids.size()) + " tensors, got " +
               std::to_string(content.tensors.size()));
  }
  std::map<std::string, const safetensors::Tensor*> by_name;
  for (const safetensors::Tensor& tensor : content.tensors) by_name[tensor.name] = &tensor;
  for (const ValueId id : ids) {
    const auto found = by_name.find(std::to_string(id));
    const bool is_value = static_cast<std::size_t>(id) < graph.values.size();
    if (!is_value || found == by_name.end() || found->second->dtype != graph.values[id].dtype ||
        found->second->shape != fixed_shape(graph.values[id])) {
      field.fail("there is no tensor or value " + std::to_string(id) +
                 ", or their dtype or shape differ");
    }
    const std::span<const std::byte> bytes = found->second->bytes;
    graph.constants.push_back({id, {bytes.begin(), bytes.end()}});
  }
}

void check_read(const Graph& graph) {
  try {
    check(graph);
  } catch (const Error& error) {
    throw Error(ErrorKind::kCorruptData, error.message());
  }
}

void check_identity(const Graph& graph, const JsonField& field) {
  const std::string claimed = field.text(), actual = graph_sha256(graph);
  if (claimed == actual) return;
  field.fail("it says " + claimed.substr(0, 64) + ", the graph computes " + actual +
             "; delete the field after an edit, it is computed again");
}

/// What another graph does not have from the longest.
Json shorter_to_json(const Graph& graph) {
  Json json = {{"lengths", graph.lengths}, {"values", Json::array()}, {"nodes", Json::array()}};
  for (const Value& value : graph.values) json["values"].push_back(internal::to_json(value));
  for (const Node& node : graph.nodes) json["nodes"].push_back(internal::to_json(node));
  return json;
}

std::map<std::string, std::int64_t> lengths_from_json(const JsonField& field) {
  std::map<std::string, std::int64_t> lengths;
  JsonObject object(field);
  for (const auto& [name, length] : field.json().items()) {
    lengths[name] = object.required(name.c_str()).integer(0, kMaxExtent);
  }
  object.finish();
  return lengths;
}

/// longest   read but for its `shorter`.
Graph shorter_from_json(const JsonField& field, const Graph& longest) {
  JsonObject object(field);
  Graph graph = longest;
  graph.shorter.clear();
  graph.lengths = lengths_from_json(object.required("lengths"));
  graph.values = object.required("values").list(internal::value_from_json);
  graph.nodes = object.required("nodes").list(internal::node_from_json);
  object.finish();
  return graph;
}

/// What the graph computes.
Json computed_to_json(const Graph& graph) {
  Json json = {{"mode", kModes[static_cast<std::size_t>(graph.mode)]}};
  if (graph.microbatch > 0) json["microbatch"] = graph.microbatch;
  for (const char* name : {"inputs", "parameters", "buffers", "losses", "values", "nodes"}) {
    json[name] = Json::array();
  }
  for (const Input& input : graph.inputs) {
    json["inputs"].push_back(
        {{"name", input.name}, {"value", input.value}, {"batch_dim", input.batch_dim}});
  }
  for (const Parameter& parameter : graph.parameters) {
    json["parameters"].push_back(state_to_json(parameter));
  }
  for (const Buffer& buffer : graph.buffers) {
    json["buffers"].push_back(state_to_json(buffer));
    json["buffers"].back()["policy"] = kPolicies[static_cast<std::size_t>(buffer.policy)];
  }
  for (const LossOutput& loss : graph.losses) json["losses"].push_back(to_json(loss));
  for (const Output& output : graph.outputs) {
    json["outputs"].push_back({{"name", output.name}, {"value", output.value}});
  }
  for (const Value& value : graph.values) json["values"].push_back(internal::to_json(value));
  for (const Node& node : graph.nodes) json["nodes"].push_back(internal::to_json(node));
  if (graph.lengths.empty()) return json;
  json["lengths"] = graph.lengths;
  for (const Graph& other : graph.shorter) json["shorter"].push_back(shorter_to_json(other));
  return json;
}

/// Of the field `graph_sha256`. Takes the result of `computed_to_json`.
std::string identity_of(const Graph& graph, Json computed) {
  for (Json& node : computed["nodes"]) node.erase("name");
  if (computed.contains("shorter")) {
    for (Json& other : computed["shorter"]) {
      for (Json& node : other["nodes"]) node.erase("name");
    }
  }
  computed["constants"] = Json::object();
  for (const ConstantTensor& constant : graph.constants) {
    computed["constants"][std::to_string(constant.value)] = sha256(constant.bytes);
  }
  return sha256(compact_text(computed));
}

}  // namespace

Json to_json(const Graph& graph) {
  Json json = computed_to_json(graph);
  json["graph_sha256"] = identity_of(graph, json);
  json["torch_version"] = graph.torch_version;
  if (!graph.constants.empty()) json["constants"] = constants_to_json(graph);
  json["derived"] = derived_to_json(graph);
  return json;
}

std::vector<std::byte> constants_file(const Graph& graph) {
  if (graph.constants.empty()) return {};
  std::vector<safetensors::Tensor> tensors;
  for (const ConstantTensor& constant : graph.constants) {
    const Value& value = graph.values[constant.value];
    tensors.push_back(
        {std::to_string(constant.value), value.dtype, fixed_shape(value), constant.bytes});
  }
  return safetensors::to_bytes(std::move(tensors));
}

Graph graph_from_json(const Json& body, std::span<const std::byte> constants) {
  JsonObject object(JsonField(body, "graph"));
  Graph graph;
  graph.mode = static_cast<Mode>(object.required("mode").choice(kModes));
  graph.torch_version = object.required("torch_version").text();
  if (const auto size = object.optional("microbatch"))
    graph.microbatch = size->integer(1, kMaxExtent);
  graph.inputs = object.required("inputs").list(input_from_json);
  graph.parameters = object.required("parameters").list(parameter_from_json);
  graph.buffers = object.required("buffers").list(buffer_from_json);
  graph.losses = object.required("losses").list(loss_from_json);
  if (const auto outputs = object.optional("outputs")) {
    graph.outputs = outputs->list(output_from_json);
  }
  graph.values = object.required("values").list(internal::value_from_json);
  graph.nodes = object.required("nodes").list(internal::node_from_json);
  if (const auto field = object.optional("constants")) read_constants(graph, *field, constants);
  if (const auto field = object.optional("lengths")) graph.lengths = lengths_from_json(*field);
  if (const auto others = object.optional("shorter")) {
    graph.shorter = others->list(
        [longest = graph](const JsonField& item) { return shorter_from_json(item, longest); });
  }
  const auto identity = object.optional("graph_sha256");
  const auto derived = object.optional("derived");
  object.finish();
  if (derived && !derived->json().is_object()) derived->fail_expected("an object");
  check_read(graph);
  if (identity) check_identity(graph, *identity);
  return graph;
}

bool has_constants(const Json& body) { return body.is_object() && body.contains("constants"); }

std::string graph_sha256(const Graph& graph) { return identity_of(graph, computed_to_json(graph)); }

namespace {

/// Reading takes some 30 times as much memory.
constexpr std::uintmax_t kMostFileBytes = std::uintmax_t{64} << 20;

}  // namespace

std::filesystem::path constants_path(const std::filesystem::path& path) {
  return std::filesystem::path(path).replace_extension(".safetensors");
}

std::string save(const Graph& graph, const std::filesystem::path& path) {
  if (path.extension() == ".safetensors") {
    throw Error(ErrorKind::kInvalidArgument,
                "cannot save a graph to '" + path.string() + "'; give it the extension .json");
  }
  check(graph);
  const std::vector<std::byte> constants = constants_file(graph);
  if (!constants.empty()) write_file_atomically(constants_path(path), constants);
  return write_document(path, kGraphDocument, to_json(graph));
}

Graph load(const std::filesystem::path& path) {
  std::error_code ignored;  // Whoever reads it says what is wrong.
  const std::uintmax_t bytes = std::filesystem::file_size(path, ignored);
  if (!ignored && bytes > kMostFileBytes) {
    throw Error(ErrorKind::kInvalidArgument,
                "'" + path.string() + "' has " + std::to_string(bytes) + " bytes; a graph has at " +
                    "most " + std::to_string(kMostFileBytes) + ", some 40,000 nodes");
  }
  const Json body = read_document(path, kGraphDocument);
  try {
    if (!has_constants(body)) return graph_from_json(body);
    return graph_from_json(body, read_file_bytes(constants_path(path)));
  } catch (const Error& error) {
    throw Error(error.kind(), "'" + path.string() + "': " + error.message());
  }
}

}  // namespace trireme::graph
