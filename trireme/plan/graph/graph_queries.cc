#include "trireme/plan/graph/graph_queries.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "trireme/error.h"

namespace trireme::graph {
namespace {

void collect(const Argument& argument, std::vector<ValueId>& values) {
  if (const auto* tensor = std::get_if<ValueRef>(&argument.content)) {
    values.push_back(tensor->value);
  } else if (const auto* list = std::get_if<ArgumentList>(&argument.content)) {
    for (const Argument& item : *list) collect(item, values);
  }
}

}  // namespace

std::vector<ValueId> input_values(const Node& node) {
  std::vector<ValueId> values;
  values.reserve(node.inputs.size());
  for (const Argument& argument : node.inputs) collect(argument, values);
  return values;
}

bool takes_field(const Graph& graph, const Node& node) {
  return std::ranges::any_of(input_values(node), [&](ValueId id) {
    return graph.values[id].source == ValueSource::kInput;
  });
}

bool is_outside(ValueSource source) {
  return source == ValueSource::kInput || source == ValueSource::kStepScalar ||
         source == ValueSource::kConstant;
}

std::unordered_map<NodeId, int> node_positions(const Graph& graph) {
  std::unordered_map<NodeId, int> positions;
  positions.reserve(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    positions.emplace(graph.nodes[i].id, static_cast<int>(i));
  }
  return positions;
}

std::unordered_map<int, StorageHistory> storage_histories(const Graph& graph) {
  std::unordered_map<int, StorageHistory> histories;
  const auto storage_of = [&](ValueId id) -> StorageHistory& {
    return histories[graph.values[id].storage_id];
  };
  const auto produce = [&](ValueId id, int position) {
    StorageHistory& history = storage_of(id);
    if (history.first_production != StorageHistory::kNever) return;
    history.first_production = position;
    history.first_value = id;
  };
  for (const Input& input : graph.inputs) produce(input.value, StorageHistory::kBatch);
  for (int position = 0; position < static_cast<int>(graph.nodes.size()); ++position) {
    const Node& node = graph.nodes[position];
    for (const ValueId id : node.outputs) {
      if (id >= 0 && graph.values[id].producer == node.id) produce(id, position);
    }
    for (const ValueId id : node.writes) storage_of(id).writes.push_back(position);
    if (node.op.starts_with("aten::as_strided")) {
      for (const ValueId id : input_values(node)) storage_of(id).strided.push_back(position);
    }
  }
  return histories;
}

std::vector<int> ancestors(const Graph& graph, std::span<const ValueId> values) {
  std::set<int> storages;  // Whatever touches memory of a needed value counts as needed.
  for (ValueId value : values) storages.insert(graph.values[value].storage_id);
  std::vector<int> result;
  for (int position = static_cast<int>(graph.nodes.size()) - 1; position >= 0; --position) {
    const Node& node = graph.nodes[position];
    const auto is_needed = [&](ValueId value) {
      return value >= 0 && storages.contains(graph.values[value].storage_id);
    };
    if (!std::any_of(node.outputs.begin(), node.outputs.end(), is_needed) &&
        !std::any_of(node.writes.begin(), node.writes.end(), is_needed)) {
      continue;
    }
    result.push_back(position);
    for (ValueId value : input_values(node)) {
      storages.insert(graph.values[value].storage_id);
    }
  }
  std::reverse(result.begin(), result.end());
  return result;
}

namespace {

std::int64_t checked_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw Error(ErrorKind::kInvalidArgument, "the size of a tensor exceeds 64 bits");
  }
  return product;
}

}  // namespace

std::int64_t num_elements_at(const Value& value, std::int64_t batch) {
  std::int64_t elements = 1;
  for (const Size& size : value.shape) {
    std::int64_t dim = 0;
    if (__builtin_add_overflow(checked_product(size.per_sample, batch), size.fixed, &dim) ||
        dim < 0) {
      throw Error(ErrorKind::kInvalidArgument, "a dimension " + std::to_string(size.per_sample) +
                                                   " * batch + " + std::to_string(size.fixed) +
                                                   " is out of range for a batch of " +
                                                   std::to_string(batch));
    }
    elements = checked_product(elements, dim);
  }
  return elements;
}

std::int64_t bytes_at(const Value& value, std::int64_t batch) {
  return checked_product(num_elements_at(value, batch),
                         static_cast<std::int64_t>(size_bytes(value.dtype)));
}

namespace {

/// Nodes that use a parameter.
struct Users {
  std::vector<NodeId> nodes;  ///< In execution order.
  int num_recorded = 0;       ///< Those that are no copies.
};

/// By parameter.
std::vector<Users> find_users(const Graph& graph) {
  std::vector<int> parameter_of(graph.values.size(), -1);
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    const ValueId value = graph.parameters[p].value;
    if (graph.values[value].requires_grad) parameter_of[value] = static_cast<int>(p);
  }
  std::vector<Users> users(graph.parameters.size());
  for (const Node& node : graph.nodes) {
    if (!node.flags.grad_mode) continue;
    for (const ValueId value : input_values(node)) {
      if (parameter_of[value] < 0) continue;
      Users& all = users[parameter_of[value]];
      if (!all.nodes.empty() && all.nodes.back() == node.id) continue;
      all.nodes.push_back(node.id);
      all.num_recorded += node.copy_of < 0 ? 1 : 0;
    }
  }
  return users;
}

/// Weights of a bag's entries would keep the rows for their backward.
bool takes_rows(const Node& node) {
  constexpr std::size_t kEntryWeights = 6;
  if (node.op == kRescaleRows || node.op == "aten::embedding") return true;
  return node.op == "aten::embedding_bag" &&
         (node.inputs.size() <= kEntryWeights ||
          std::holds_alternative<std::monostate>(node.inputs[kEntryWeights].content));
}

}  // namespace

std::vector<int> written_parameters(const Graph& graph) {
  std::vector<bool> is_written(graph.values.size());
  for (const Node& node : graph.nodes) {
    for (const ValueId value : node.writes) is_written[value] = true;
  }
  std::vector<int> written;
  for (int p = 0; p < static_cast<int>(graph.parameters.size()); ++p) {
    if (is_written[graph.parameters[p].value]) written.push_back(p);
  }
  return written;
}

const Node* use_beside_rows(const Graph& graph, int parameter) {
  const int storage = graph.values[graph.parameters[parameter].value].storage_id;
  for (const Node& node : graph.nodes) {
    if (takes_rows(node)) continue;
    for (const ValueId value : input_values(node)) {
      if (graph.values[value].storage_id == storage) return &node;
    }
  }
  return nullptr;
}

std::vector<std::string> unused_parameters(const Graph& graph) {
  const std::vector<Users> users = find_users(graph);
  std::vector<std::string> names;
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    const Parameter& parameter = graph.parameters[p];
    if (graph.values[parameter.value].requires_grad && users[p].nodes.empty()) {
      names.push_back(parameter.name);
    }
  }
  return names;
}

std::vector<UseSite> use_sites(const Graph& graph) {
  const std::vector<Users> users = find_users(graph);
  std::vector<UseSite> sites;
  for (int parameter = 0; parameter < static_cast<int>(users.size()); ++parameter) {
    const std::vector<NodeId>& nodes = users[parameter].nodes;
    if (users[parameter].num_recorded > kMaxUseSites) {
      sites.push_back({parameter, 0, nodes});
      continue;
    }
    for (int site = 0; site < static_cast<int>(nodes.size()); ++site) {
      sites.push_back({parameter, site, {nodes[site]}});
    }
  }
  return sites;
}

std::optional<int> site_of(std::span<const UseSite> sites, NodeId node, int parameter) {
  auto found =
      std::lower_bound(sites.begin(), sites.end(), parameter,
                       [](const UseSite& site, int wanted) { return site.parameter < wanted; });
  for (; found != sites.end() && found->parameter == parameter; ++found) {
    if (std::find(found->nodes.begin(), found->nodes.end(), node) != found->nodes.end()) {
      return found->site;
    }
  }
  return std::nullopt;
}

}  // namespace trireme::graph
