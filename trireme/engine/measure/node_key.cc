#include "trireme/engine/measure/node_key.h"

#include <algorithm>
#include <vector>

#include "trireme/plan/graph/node_json.h"

namespace trireme::measure {
namespace {

using graph::Argument;
using graph::ArgumentList;
using graph::Size;

class KeyWriter {
 public:
  KeyWriter(const graph::Graph& graph, const graph::Node& node, std::int64_t batch,
            const WeightValues& weights)
      : graph_(graph), node_(node), batch_(batch), weights_(weights) {}

  std::string write() {
    std::string text = node_.op;
    if (!node_.overload.empty()) text += "." + node_.overload;
    text += "(" + list(node_.inputs) + ")";
    if (is_view()) text += outputs();
    if (!node_.flags.grad_mode) text += " no_grad";
    if (node_.autocast) text += " autocast " + std::string(to_text(node_.autocast->dtype));
    return text;
  }

 private:
  bool is_view() const { return node_.flags.view && node_.writes.empty(); }

  static bool holds_tensor(const Argument& argument) {
    if (const auto* list = std::get_if<ArgumentList>(&argument.content)) {
      return std::any_of(list->begin(), list->end(), holds_tensor);
    }
    return std::holds_alternative<graph::ValueRef>(argument.content);
  }

  std::string list(const ArgumentList& arguments) {
    std::string text;
    for (const Argument& argument : arguments) {
      if (is_view() && !holds_tensor(argument)) continue;
      text += (text.empty() ? "" : ", ") + this->argument(argument);
    }
    return text;
  }

  std::string argument(const Argument& argument) {
    if (const auto* ref = std::get_if<graph::ValueRef>(&argument.content)) return input(ref->value);
    if (const auto* items = std::get_if<ArgumentList>(&argument.content)) {
      return "[" + list(*items) + "]";
    }
    if (const auto* size = std::get_if<Size>(&argument.content)) {
      return std::to_string(size->at(batch_));
    }
    if (const auto* real = std::get_if<graph::Real>(&argument.content)) {
      return compact_text(real_to_json(real->at(batch_)));
    }
    return compact_text(graph::to_json(argument));
  }

  /// A tensor; one that was taken before is named by its place, for that decides aliasing.
  std::string input(graph::ValueId id) {
    const auto known = std::find(seen_.begin(), seen_.end(), id);
    if (known != seen_.end()) return "again " + std::to_string(known - seen_.begin());
    seen_.push_back(id);
    const graph::Value& value = graph_.values[id];
    if (!value.requires_grad || !node_.flags.grad_mode) return tensor(value);
    return tensor(value) + (weights_[id] ? " weight" : " gradient");
  }

  std::string outputs() const {
    std::string text;
    for (graph::ValueId id : node_.outputs) {
      if (id >= 0) text += (text.empty() ? " -> " : ", ") + tensor(graph_.values[id]);
    }
    return text;
  }

  std::string sizes(const std::vector<Size>& sizes) const {
    std::string text;
    for (const Size& size : sizes) {
      text += (text.empty() ? "" : ", ") + std::to_string(size.at(batch_));
    }
    return text;
  }

  std::string tensor(const graph::Value& value) const {
    std::string text = std::string(to_text(value.dtype)) + "[" + sizes(value.shape) + "]";
    std::int64_t dense = 1;
    for (std::size_t d = value.shape.size(); d-- > 0;) {
      if (value.strides.empty()) break;
      if (value.shape[d].at(batch_) != 1 && value.strides[d].at(batch_) != dense) {
        return text + "{" + sizes(value.strides) + "}";
      }
      dense *= value.shape[d].at(batch_);
    }
    return text;
  }

  const graph::Graph& graph_;
  const graph::Node& node_;
  const std::int64_t batch_;
  const WeightValues& weights_;
  std::vector<graph::ValueId> seen_;
};

}  // namespace

std::string node_key(const graph::Graph& graph, const graph::Node& node, std::int64_t batch,
                     const WeightValues& weights) {
  return KeyWriter(graph, node, batch, weights).write();
}

}  // namespace trireme::measure
