#include "trireme/plan/graph/difference.h"

#include <algorithm>
#include <map>
#include <variant>

#include "trireme/plan/graph/argument_json.h"
#include "trireme/plan/graph/show.h"

namespace trireme::graph {
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
    const auto text = [](const Loss& loss) {
      return std::string(loss.weight ? "sum over a weight" : "mean") + ", coefficient " +
             compact_text(Json(loss.coefficient));
    };
    for (const Loss& loss : before_.losses) texts[loss.name].first = text(loss);
    for (const Loss& loss : now_.losses) texts[loss.name].second = text(loss);
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
