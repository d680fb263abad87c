#include "trireme/engine/record/answers.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include <set>
#include <string>
#include <vector>

#include "trireme/engine/record/packed.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::record {
namespace {

void expect_equal(const at::Tensor& a, const at::Tensor& b, bool answer) {
  TORCH_CHECK(at::equal(a, b) == answer, "the two tensors were ", answer ? "equal" : "different",
              " when the model was recorded and are not now: it would take another branch; make it "
              "an opaque node");
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (auto name = names.begin(); name != names.end(); ++name) {
    const bool is_last = std::next(name) == names.end();
    text += (name == names.begin() ? "" : is_last ? " and " : ", ") + *name;
  }
  return text;
}

template <typename Entries>
std::string name_among(const Entries& entries, graph::ValueId value) {
  for (const auto& entry : entries) {
    if (entry.value == value) return entry.name;
  }
  return "";
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def("expect_equal(Tensor a, Tensor b, bool answer) -> ()", expect_equal);
}

const graph::Node* producer_of(const graph::Graph& graph, const graph::Value& value) {
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (value.producer >= 0 && node->id == value.producer) return &*node;
  }
  return nullptr;
}

std::string origin_text(const graph::Graph& graph, const std::vector<graph::Value>& values,
                        graph::ValueId value) {
  std::set<std::string> names;
  std::set<graph::ValueId> seen = {value};
  std::vector<graph::ValueId> pending = {value};
  while (!pending.empty()) {
    const graph::ValueId id = pending.back();
    pending.pop_back();
    switch (values[id].source) {
      case graph::ValueSource::kBuffer:
        names.insert("the buffer '" + name_among(graph.buffers, id) + "'");
        break;
      case graph::ValueSource::kInput:
      case graph::ValueSource::kStepScalar:
        names.insert("the input '" + name_among(graph.inputs, id) + "'");
        break;
      case graph::ValueSource::kParameter:
        names.insert("parameters");
        break;
      case graph::ValueSource::kConstant:
        names.insert("a constant");
        break;
      case graph::ValueSource::kNode:
        break;
    }
    if (const graph::Node* node = producer_of(graph, values[id])) {
      for (const graph::ValueId input : graph::input_values(*node)) {
        if (seen.insert(input).second) pending.push_back(input);
      }
    }
  }
  return joined(names);
}

bool counts_packed_sequences(const graph::Graph& graph, const std::vector<graph::Value>& values,
                             graph::ValueId value) {
  const graph::Node* select = producer_of(graph, values[value]);
  if (select == nullptr || select->op != "aten::select" || select->inputs.size() != 3) return false;
  const auto* sizes = std::get_if<graph::ValueRef>(&select->inputs[0].content);
  const auto* dim = std::get_if<graph::Size>(&select->inputs[1].content);
  const auto* index = std::get_if<graph::Size>(&select->inputs[2].content);
  const bool is_first = sizes != nullptr && dim != nullptr && index != nullptr &&
                        *dim == graph::Size{} && *index == graph::Size{};
  if (!is_first) return false;
  const graph::Node* pack = producer_of(graph, values[sizes->value]);
  return pack != nullptr && pack->op == kPack && pack->outputs.size() == 2 &&
         pack->outputs[1] == sizes->value;
}

}  // namespace trireme::record
