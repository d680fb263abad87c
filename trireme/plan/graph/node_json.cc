#include "trireme/plan/graph/node_json.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace trireme::graph {
namespace {

constexpr std::int64_t kMaxValue = std::numeric_limits<int>::max();

/// A real as part of `{"real": ...}` or `{"complex": ...}`.
Json affine_to_json(const Real& real) {
  if (real.per_sample == 0) return real_to_json(real.fixed);
  return {{"per_sample", real_to_json(real.per_sample)}, {"fixed", real_to_json(real.fixed)}};
}

Json to_json(const Real& real) {
  if (real.per_sample == 0 && std::isfinite(real.fixed)) return real.fixed;
  return {{"real", affine_to_json(real)}};
}

Json to_json(const std::complex<double>& number) {
  return {{"complex", {real_to_json(number.real()), real_to_json(number.imag())}}};
}

/// One overload per kind of content.
struct Writer {
  Json operator()(std::monostate /*nothing*/) const { return nullptr; }
  Json operator()(const ValueRef& tensor) const { return {{"value", tensor.value}}; }
  Json operator()(bool flag) const { return flag; }
  Json operator()(const Size& size) const { return graph::to_json(size); }
  Json operator()(const Real& real) const { return to_json(real); }
  Json operator()(const std::complex<double>& number) const { return to_json(number); }
  Json operator()(const std::string& text) const { return text; }
  Json operator()(const WrappedNumber& wrapped) const {
    return {{"wrapped", std::visit(*this, wrapped.number)},
            {"dtype", trireme::to_text(wrapped.dtype)}};
  }
  Json operator()(Dtype dtype) const { return {{"dtype", trireme::to_text(dtype)}}; }
  Json operator()(const DeviceName& device) const { return {{"device", device.name}}; }
  Json operator()(const LayoutName& layout) const { return {{"layout", layout.name}}; }
  Json operator()(const MemoryFormatName& format) const { return {{"memory_format", format.name}}; }
  Json operator()(const ArgumentList& list) const {
    Json json = Json::array();
    for (const Argument& argument : list) json.push_back(graph::to_json(argument));
    return json;
  }
};

Real read_affine(const JsonField& field) {
  if (!field.json().is_object()) return {0, field.real()};
  JsonObject object(field);
  const Real real{object.required("per_sample").real(), object.required("fixed").real()};
  object.finish();
  return real;
}

std::complex<double> read_complex(const JsonField& field) {
  const std::vector<JsonField> parts = field.items();
  if (parts.size() != 2) field.fail_expected("a real and an imaginary part");
  return {parts[0].real(), parts[1].real()};
}

WrappedNumber read_wrapped(JsonObject& object, const JsonField& field) {
  WrappedNumber wrapped{false, dtype_from_json(object.required("dtype"))};
  const Argument number = argument_from_json(field);
  if (const auto* flag = std::get_if<bool>(&number.content)) {
    wrapped.number = *flag;
  } else if (const auto* size = std::get_if<Size>(&number.content)) {
    wrapped.number = *size;
  } else if (const auto* real = std::get_if<Real>(&number.content)) {
    wrapped.number = *real;
  } else if (const auto* complex = std::get_if<std::complex<double>>(&number.content)) {
    wrapped.number = *complex;
  } else {
    field.fail_expected("a number");
  }
  return wrapped;
}

/// An argument that is written as an object: its kind is the name of its field.
Argument::Content read_object(const JsonField& field) {
  JsonObject object(field);
  const auto with = [&object](std::string_view name) { return object.optional(name); };
  Argument::Content content;
  if (const auto value = with("value")) {
    content = ValueRef{value->index(0, kMaxValue)};
  } else if (const auto wrapped = with("wrapped")) {
    content = read_wrapped(object, *wrapped);
  } else if (const auto dtype = with("dtype")) {
    content = dtype_from_json(*dtype);
  } else if (with("per_sample")) {
    return size_from_json(field);
  } else if (const auto real = with("real")) {
    content = read_affine(*real);
  } else if (const auto complex = with("complex")) {
    content = read_complex(*complex);
  } else if (const auto device = with("device")) {
    content = DeviceName{device->text()};
  } else if (const auto layout = with("layout")) {
    content = LayoutName{layout->text()};
  } else if (const auto format = with("memory_format")) {
    content = MemoryFormatName{format->text()};
  } else {
    field.fail_expected("an argument (see docs/formats.md)");
  }
  object.finish();
  return content;
}

}  // namespace

Json to_json(const Size& size) {
  if (size.is_fixed()) return size.fixed;
  return {{"per_sample", size.per_sample}, {"fixed", size.fixed}};
}

Size size_from_json(const JsonField& field) {
  if (!field.json().is_object()) return {0, field.integer()};
  JsonObject object(field);
  const Size size{object.required("per_sample").integer(), object.required("fixed").integer()};
  object.finish();
  return size;
}

Json to_json(const Argument& argument) { return std::visit(Writer{}, argument.content); }

Argument argument_from_json(const JsonField& field) {
  const Json& json = field.json();
  if (json.is_null()) return {};
  if (json.is_boolean()) return {field.boolean()};
  if (json.is_number_integer()) return {Size{0, field.integer()}};
  if (json.is_number_float()) return {Real{0, field.real()}};
  if (json.is_string()) return {field.text()};
  if (json.is_array()) return {field.list(argument_from_json)};
  return {read_object(field)};
}

}  // namespace trireme::graph

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
