#include "trireme/engine/record/graph_difference.h"

#include <algorithm>
#include <map>
#include <optional>

namespace trireme::record {

namespace {

std::optional<graph::ValueId> first_of(const graph::ArgumentList& arguments,
                                       const std::map<graph::ValueId, std::string>& wanted) {
  for (const graph::Argument& argument : arguments) {
    if (const auto* ref = std::get_if<graph::ValueRef>(&argument.content)) {
      if (wanted.contains(ref->value)) return ref->value;
    } else if (const auto* list = std::get_if<graph::ArgumentList>(&argument.content)) {
      if (const auto found = first_of(*list, wanted)) return found;
    }
  }
  return std::nullopt;
}

/// `add` of `aten::add_`.
std::string short_name(const graph::Node& node) {
  if (node.op == "opaque") return node.overload;
  std::string name = node.op.substr(node.op.rfind(':') + 1);
  while (name.size() > 1 && name.back() == '_') name.pop_back();
  return name;
}

}  // namespace

std::string module_of(const std::string& tensor_name) {
  const std::size_t dot = tensor_name.rfind('.');
  return dot == std::string::npos ? "" : tensor_name.substr(0, dot);
}

void name_nodes(graph::Graph& graph) {
  std::map<graph::ValueId, std::string> modules;
  for (const auto& parameter : graph.parameters)
    modules[parameter.value] = module_of(parameter.name);
  for (const auto& buffer : graph.buffers) modules[buffer.value] = module_of(buffer.name);
  std::map<std::string, int> uses;
  std::string module;
  for (graph::Node& node : graph.nodes) {
    if (const auto value = first_of(node.inputs, modules)) module = modules[*value];
    const std::string name = (module.empty() ? "" : module + "/") + short_name(node);
    const int use = ++uses[name];
    node.name = use == 1 ? name : name + "#" + std::to_string(use);
  }
}

namespace {

void fix(graph::Size& size, std::int64_t batch) { size = {0, size.at(batch)}; }
void fix(graph::Real& real, std::int64_t batch) { real = {0, real.at(batch)}; }

void fix(graph::Argument& argument, std::int64_t batch) {
  if (auto* list = std::get_if<graph::ArgumentList>(&argument.content)) {
    for (graph::Argument& item : *list) fix(item, batch);
  } else if (auto* size = std::get_if<graph::Size>(&argument.content)) {
    fix(*size, batch);
  } else if (auto* real = std::get_if<graph::Real>(&argument.content)) {
    fix(*real, batch);
  } else if (auto* wrapped = std::get_if<graph::WrappedNumber>(&argument.content)) {
    if (auto* number = std::get_if<graph::Size>(&wrapped->number)) fix(*number, batch);
    if (auto* number = std::get_if<graph::Real>(&wrapped->number)) fix(*number, batch);
  }
}

bool uses(const graph::ArgumentList& arguments, graph::ValueId value) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const graph::Argument& argument) {
    if (const auto* list = std::get_if<graph::ArgumentList>(&argument.content)) {
      return uses(*list, value);
    }
    const auto* ref = std::get_if<graph::ValueRef>(&argument.content);
    return ref != nullptr && ref->value == value;
  });
}

std::string constant_difference(const graph::Graph& recorded, const graph::Graph& now) {
  for (std::size_t i = 0; i < recorded.constants.size(); ++i) {
    if (i < now.constants.size() && recorded.constants[i] == now.constants[i]) continue;
    for (const graph::Node& node : recorded.nodes) {
      if (uses(node.inputs, recorded.constants[i].value)) {
        return name_of(node) + " takes a constant tensor that has changed";
      }
    }
  }
  return recorded.constants.size() == now.constants.size() ? "" : "the number of constant tensors";
}

}  // namespace

std::string name_of(const graph::Node& node) {
  return "node " + std::to_string(node.id) + " '" + node.name + "' (" + node.op + ")";
}

bool same_call(const graph::Node& a, const graph::Node& b) {
  return a.id == b.id && a.op == b.op && a.overload == b.overload && a.name == b.name &&
         a.outputs == b.outputs && a.output_lists == b.output_lists && a.writes == b.writes &&
         a.flags == b.flags && a.autocast == b.autocast;
}

graph::Graph at_batch(const graph::Graph& graph, std::int64_t batch) {
  graph::Graph fixed = graph;
  for (graph::Node& node : fixed.nodes) {
    node.flags.batch_dependent = false;
    for (graph::Argument& argument : node.inputs) fix(argument, batch);
  }
  for (graph::Value& value : fixed.values) {
    for (graph::Size& size : value.shape) fix(size, batch);
    for (graph::Size& size : value.strides) fix(size, batch);
  }
  return fixed;
}

std::string difference(const graph::Graph& recorded, const graph::Graph& now) {
  const std::size_t most = std::max(recorded.nodes.size(), now.nodes.size());
  for (std::size_t i = 0; i < most; ++i) {
    if (i >= recorded.nodes.size()) return name_of(now.nodes[i]) + " is new";
    if (i >= now.nodes.size()) return name_of(recorded.nodes[i]) + " is gone";
    if (!same_call(recorded.nodes[i], now.nodes[i])) {
      return name_of(recorded.nodes[i]) + " has become " + name_of(now.nodes[i]);
    }
    if (recorded.nodes[i].inputs != now.nodes[i].inputs) {
      return name_of(recorded.nodes[i]) + " takes other arguments";
    }
  }
  for (const graph::Parameter& parameter : recorded.parameters) {
    if (recorded.values[parameter.value].requires_grad !=
        now.values[parameter.value].requires_grad) {
      return "parameter '" + parameter.name + "' was frozen or unfrozen";
    }
  }
  for (std::size_t i = 0; i < std::min(recorded.values.size(), now.values.size()); ++i) {
    const bool has_same_form = recorded.values[i].shape == now.values[i].shape &&
                               recorded.values[i].strides == now.values[i].strides;
    if (has_same_form) continue;
    for (const graph::Node& node : recorded.nodes) {
      if (node.id == recorded.values[i].producer) return name_of(node) + " gives another shape";
    }
  }
  return constant_difference(recorded, now);
}

}  // namespace trireme::record
