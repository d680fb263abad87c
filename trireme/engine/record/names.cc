#include "trireme/engine/record/names.h"

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

}  // namespace trireme::record
