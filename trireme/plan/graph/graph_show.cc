#include "trireme/plan/graph/graph_show.h"

#include <algorithm>
#include <map>
#include <variant>

#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/graph/lengths.h"
#include "trireme/plan/graph/node_json.h"
#include "trireme/plan/graph/text_table.h"

namespace trireme::graph {
namespace {

constexpr std::size_t kNameColumns = 48;

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

std::string tensor_text(const Value& value) {
  return std::string(trireme::to_text(value.dtype)) + to_text(value.shape) +
         (value.is_ragged ? " or shorter" : "");
}

std::string section(const std::string& title, const Table& table) {
  return table.is_empty() ? "" : "\n" + title + "\n" + table.text();
}

/// To what samples are padded.
std::string padded_text(const Graph& graph) {
  if (graph.lengths.empty()) return "";
  std::vector<std::string> lengths;
  for (const Graph& other : graph.shorter) lengths.push_back(lengths_text(other));
  lengths.push_back(lengths_text(graph));
  return "  samples padded to " + joined(lengths) + "\n";
}

std::string summary(const Graph& graph, const std::vector<bool>& allowed) {
  std::int64_t elements = 0, bytes = 0;
  for (const Parameter& parameter : graph.parameters) {
    elements += num_elements_at(graph.values[parameter.value], 1);
    bytes += bytes_at(graph.values[parameter.value], 1);
  }
  std::int64_t num_cuts = 0;
  for (const bool is_allowed : allowed) num_cuts += is_allowed ? 1 : 0;
  return std::string(graph.mode == Mode::kTrain ? "training" : "evaluation") + " graph, " +
         with_commas(static_cast<std::int64_t>(graph.nodes.size())) + " nodes, " +
         with_commas(num_cuts) + " allowed cuts, " +
         with_commas(static_cast<std::int64_t>(graph.parameters.size())) + " parameters with " +
         with_commas(elements) + " elements (" + bytes_text(bytes) + "), torch " +
         graph.torch_version + "\n  graph_sha256 " + graph_sha256(graph) + "\n" +
         padded_text(graph);
}

std::string inputs_text(const Graph& graph) {
  Table table({"name", "tensor", "batch dimension"});
  for (const Input& input : graph.inputs) {
    table.add({input.name, tensor_text(graph.values[input.value]),
               input.batch_dim == -1 ? "step scalar" : std::to_string(input.batch_dim)});
  }
  return section("inputs", table);
}

std::string parameters_text(const Graph& graph) {
  std::map<int, int> num_sites;
  for (const UseSite& site : use_sites(graph)) ++num_sites[site.parameter];
  Table table({"name", "tensor", ">elements", ">sites", "also registered as"});
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    const Parameter& parameter = graph.parameters[p];
    const Value& value = graph.values[parameter.value];
    table.add({parameter.name, tensor_text(value), with_commas(num_elements_at(value, 1)),
               value.requires_grad ? std::to_string(num_sites[static_cast<int>(p)]) : "frozen",
               joined(parameter.aliases)});
  }
  return section("parameters", table);
}

std::string buffers_text(const Graph& graph) {
  constexpr const char* kPolicies[] = {"read only", "batch norm", "counter", "eager"};
  Table table({"name", "tensor", "policy", "also registered as"});
  for (const Buffer& buffer : graph.buffers) {
    table.add({buffer.name, tensor_text(graph.values[buffer.value]),
               kPolicies[static_cast<int>(buffer.policy)], joined(buffer.aliases)});
  }
  return section("buffers", table);
}

std::string losses_text(const Graph& graph) {
  Table table({"name", ">value", "kind", "coefficient"});
  for (const LossOutput& loss : graph.losses) {
    const std::string kind =
        loss.weight ? "sum, weight is value " + std::to_string(*loss.weight) : "mean";
    std::string coefficient = std::to_string(loss.coefficient);
    coefficient.erase(coefficient.find_last_not_of('0') + 1);
    if (coefficient.ends_with('.')) coefficient.pop_back();
    table.add({loss.name, std::to_string(loss.value), kind,
               loss.coefficient == 0 ? "0 (metric)" : coefficient});
  }
  return section("losses", table);
}

std::string outputs_text(const Graph& graph) {
  if (graph.outputs.empty()) return "";
  Table table({"name", ">value", "tensor"});
  for (const Output& output : graph.outputs) {
    table.add({output.name, std::to_string(output.value), tensor_text(graph.values[output.value])});
  }
  return section("outputs", table);
}

std::string marks(const Node& node, bool is_cut_before) {
  std::string text = is_cut_before ? "|" : " ";
  text += node.flags.random ? 'r' : ' ';
  text += node.writes.empty() ? ' ' : 'w';
  text += node.flags.view ? 'v' : ' ';
  text += node.flags.grad_mode ? ' ' : 'n';
  return text;
}

std::string nodes_text(const Graph& graph, const std::vector<bool>& allowed) {
  Table table({"marks", ">at", ">id", "name", "operator", "outputs"});
  for (std::size_t position = 0; position < graph.nodes.size(); ++position) {
    const Node& node = graph.nodes[position];
    std::vector<std::string> outputs;
    for (const ValueId id : node.outputs) {
      outputs.push_back(id == -1 ? "none" : tensor_text(graph.values[id]));
    }
    table.add({marks(node, allowed[position]), std::to_string(position), std::to_string(node.id),
               shortened(node.name, kNameColumns), operator_text(node), joined(outputs)});
  }
  return section("nodes (| a cut may fall before it, r random, w writes, v view, n no gradients)",
                 table);
}

}  // namespace

std::string to_text(const Size& size) {
  if (size.is_fixed()) return std::to_string(size.fixed);
  std::string text = size.per_sample == 1 ? "B" : std::to_string(size.per_sample) + "B";
  if (size.fixed > 0) text += "+" + std::to_string(size.fixed);
  if (size.fixed < 0) text += std::to_string(size.fixed);
  return text;
}

std::string to_text(const std::vector<Size>& shape) {
  std::vector<std::string> dims;
  for (const Size& size : shape) dims.push_back(to_text(size));
  return "[" + joined(dims) + "]";
}

std::string operator_text(const Node& node) {
  if (node.overload.empty()) return node.op;
  return node.op + (node.op == "opaque" ? ":" : ".") + node.overload;
}

std::string show(const Graph& graph) {
  const std::vector<bool> allowed = allowed_cuts(graph);
  return summary(graph, allowed) + inputs_text(graph) + parameters_text(graph) +
         buffers_text(graph) + losses_text(graph) + outputs_text(graph) +
         nodes_text(graph, allowed);
}

namespace {

std::string tensor_of(const Value& value) {
  return std::string(trireme::to_text(value.dtype)) + to_text(value.shape) +
         (value.is_ragged ? " or shorter" : "") +
         (value.source == ValueSource::kParameter && !value.requires_grad ? " frozen" : "");
}

class Comparer {
 public:
  Comparer(const Graph& before, const Graph& now) : before_(before), now_(now) {}

  std::vector<std::string> run() {
    if (before_.mode != now_.mode) add("the mode: one is of training, one of evaluation");
    named("parameter", before_.parameters, now_.parameters);
    named("buffer", before_.buffers, now_.buffers);
    named("input", before_.inputs, now_.inputs);
    named("output", before_.outputs, now_.outputs);
    losses();
    nodes();
    constants();
    return std::move(found_);
  }

 private:
  void add(std::string text) { found_.push_back(std::move(text)); }

  void add_change(const std::string& what, const std::string& before, const std::string& now) {
    if (before != now) add(what + ": " + before + " -> " + now);
  }

  template <typename Item>
  void named(const std::string& kind, const std::vector<Item>& before,
             const std::vector<Item>& now) {
    std::map<std::string, std::pair<std::string, std::string>> texts;
    for (const Item& item : before) texts[item.name].first = tensor_of(before_.values[item.value]);
    for (const Item& item : now) texts[item.name].second = tensor_of(now_.values[item.value]);
    for (const auto& [name, text] : texts) {
      const std::string subject = kind + " '" + name + "'";
      if (text.first.empty()) {
        add(subject + " is new");
      } else if (text.second.empty()) {
        add(subject + " is gone");
      } else {
        add_change(subject, text.first, text.second);
      }
    }
  }

  void losses() {
    std::map<std::string, std::pair<std::string, std::string>> texts;
    const auto text = [](const LossOutput& loss) {
      return std::string(loss.weight ? "sum over a weight" : "mean") + ", coefficient " +
             compact_text(Json(loss.coefficient));
    };
    for (const LossOutput& loss : before_.losses) texts[loss.name].first = text(loss);
    for (const LossOutput& loss : now_.losses) texts[loss.name].second = text(loss);
    for (const auto& [name, both] : texts) {
      const auto& [before, now] = both;
      add_change("loss '" + name + "'", before.empty() ? "none" : before,
                 now.empty() ? "none" : now);
    }
  }

  void nodes() {
    if (before_.nodes.size() != now_.nodes.size()) {
      add_change("number of nodes", std::to_string(before_.nodes.size()),
                 std::to_string(now_.nodes.size()));
    }
    const std::size_t num = std::min(before_.nodes.size(), now_.nodes.size());
    for (std::size_t i = 0; i < num; ++i) {
      const Node &before = before_.nodes[i], &now = now_.nodes[i];
      const std::string subject = "node " + std::to_string(now.id) + " '" + now.name + "'";
      if (operator_text(before) != operator_text(now)) {
        // What follows is shifted: it says nothing.
        return add_change(subject, operator_text(before), operator_text(now));
      }
      arguments(before, now, subject);
      if (before.autocast != now.autocast) add(subject + ": autocast is another");
      if (!(before.flags == now.flags)) add(subject + ": its flags are others");
      results(before, now, subject);
    }
  }

  void arguments(const Node& before, const Node& now, const std::string& subject) {
    const std::size_t num = std::min(before.inputs.size(), now.inputs.size());
    for (std::size_t a = 0; a < num; ++a) {
      if (before.inputs[a] == now.inputs[a]) continue;
      add_change(subject, operator_text(now) + " " + compact_text(to_json(before.inputs[a])),
                 compact_text(to_json(now.inputs[a])));
    }
    if (before.inputs.size() != now.inputs.size()) add(subject + ": other numbers of arguments");
  }

  void results(const Node& before, const Node& now, const std::string& subject) {
    for (std::size_t o = 0; o < std::min(before.outputs.size(), now.outputs.size()); ++o) {
      if (before.outputs[o] == -1 || now.outputs[o] == -1) continue;
      add_change(subject + " makes", tensor_of(before_.values[before.outputs[o]]),
                 tensor_of(now_.values[now.outputs[o]]));
    }
  }

  void constants() {
    const std::size_t num = std::min(before_.constants.size(), now_.constants.size());
    if (before_.constants.size() != now_.constants.size()) {
      add_change("number of constant tensors", std::to_string(before_.constants.size()),
                 std::to_string(now_.constants.size()));
    }
    for (std::size_t c = 0; c < num; ++c) {
      if (before_.constants[c].bytes == now_.constants[c].bytes) continue;
      add("constant tensor " + std::to_string(now_.constants[c].value) + " has other numbers");
    }
  }

  const Graph& before_;
  const Graph& now_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> differences(const Graph& before, const Graph& now) {
  return Comparer(before, now).run();
}

std::string differences_text(const std::vector<std::string>& differences, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, differences.size()); ++i) {
    text += (i == 0 ? "" : "; ") + differences[i];
  }
  if (differences.size() > most) {
    text += "; and " + std::to_string(differences.size() - most) + " more";
  }
  return text;
}

}  // namespace trireme::graph
