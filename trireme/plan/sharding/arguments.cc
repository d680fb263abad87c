#include "trireme/plan/sharding/dimension_map.h"

namespace trireme::sharding {
namespace {

using graph::Argument;
using graph::Node;

const Argument* argument_at(const Node& node, std::size_t index) {
  return index < node.inputs.size() ? &node.inputs[index] : nullptr;
}

std::optional<std::int64_t> integer_of(const Argument& argument) {
  const auto* size = std::get_if<graph::Size>(&argument.content);
  if (size == nullptr || !size->is_fixed()) return std::nullopt;
  return size->fixed;
}

}  // namespace

std::optional<graph::ValueId> value_at(const Node& node, std::size_t index) {
  const Argument* argument = argument_at(node, index);
  const auto* ref = argument ? std::get_if<graph::ValueRef>(&argument->content) : nullptr;
  return ref ? std::optional(ref->value) : std::nullopt;
}

std::optional<bool> bool_at(const Node& node, std::size_t index) {
  const Argument* argument = argument_at(node, index);
  const auto* flag = argument ? std::get_if<bool>(&argument->content) : nullptr;
  return flag ? std::optional(*flag) : std::nullopt;
}

std::optional<std::int64_t> integer_at(const Node& node, std::size_t index) {
  const Argument* argument = argument_at(node, index);
  return argument ? integer_of(*argument) : std::nullopt;
}

std::optional<double> number_at(const Node& node, std::size_t index) {
  const Argument* argument = argument_at(node, index);
  if (argument == nullptr) return std::nullopt;
  if (const auto* real = std::get_if<graph::Real>(&argument->content)) {
    return real->per_sample == 0 ? std::optional(real->fixed) : std::nullopt;
  }
  const auto integer = integer_of(*argument);
  return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> integers_at(const Node& node, std::size_t index) {
  const Argument* argument = argument_at(node, index);
  const auto* list = argument ? std::get_if<graph::ArgumentList>(&argument->content) : nullptr;
  if (list == nullptr) return std::nullopt;
  std::vector<std::int64_t> result;
  for (const Argument& item : *list) {
    const auto integer = integer_of(item);
    if (!integer) return std::nullopt;
    result.push_back(*integer);
  }
  return result;
}

std::optional<int> dimension_at(const Node& node, std::size_t index, int rank) {
  const auto dim = integer_at(node, index);
  if (!dim || *dim < -rank || *dim >= rank) return std::nullopt;
  return static_cast<int>(*dim < 0 ? *dim + rank : *dim);
}

}  // namespace trireme::sharding
