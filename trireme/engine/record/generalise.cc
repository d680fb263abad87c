#include "trireme/engine/record/generalise.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/engine/record/graph_difference.h"
#include "trireme/error.h"

namespace trireme::record {

namespace {

/// The same thing in each recording, and the batch sizes of these.
template <typename T>
struct Samples {
  std::vector<const T*> items;
  const std::vector<std::int64_t>& batches;

  /// The same part of each.
  template <typename Part>
  auto each(Part part) const {
    Samples<std::remove_cvref_t<decltype(part(*items[0]))>> parts{{}, batches};
    for (const T* item : items) parts.items.push_back(&part(*item));
    return parts;
  }

  bool all_equal() const {
    for (const T* item : items) {
      if (!(*item == *items[0])) return false;
    }
    return true;
  }
};

class Unexplained : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::string numbers_text(const std::vector<std::string>& numbers,
                         const std::vector<std::int64_t>& batches) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    text += (i == 0 ? "" : ", ") + numbers[i] + " at batch " + std::to_string(batches[i]);
  }
  return text;
}

graph::Size fit(const Samples<graph::Size>& samples) {
  const auto& [items, batches] = samples;
  const std::int64_t rise = items[1]->fixed - items[0]->fixed;
  const std::int64_t run = batches[1] - batches[0];
  const graph::Size size{rise / run, items[0]->fixed - rise / run * batches[0]};
  std::vector<std::string> numbers;
  bool fits = rise % run == 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    fits = fits && size.at(batches[i]) == items[i]->fixed;
    numbers.push_back(std::to_string(items[i]->fixed));
  }
  if (!fits) throw Unexplained("the number " + numbers_text(numbers, batches));
  return size;
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

graph::Real fit(const Samples<graph::Real>& samples) {
  const auto& [items, batches] = samples;
  const double rise = items[1]->fixed - items[0]->fixed;
  graph::Real real{0, items[0]->fixed};
  if (!same_bits(items[0]->fixed, items[1]->fixed)) {
    real.per_sample = rise / static_cast<double>(batches[1] - batches[0]);
    real.fixed = items[0]->fixed - real.per_sample * static_cast<double>(batches[0]);
  }
  std::vector<std::string> numbers;
  bool fits = true;
  for (std::size_t i = 0; i < items.size(); ++i) {
    fits = fits && same_bits(real.at(batches[i]), items[i]->fixed);
    numbers.push_back(std::to_string(items[i]->fixed));
  }
  if (!fits) throw Unexplained("the number " + numbers_text(numbers, batches));
  return real;
}

std::vector<graph::Size> fit(const Samples<std::vector<graph::Size>>& samples) {
  std::vector<graph::Size> sizes;
  for (std::size_t i = 0; i < samples.items[0]->size(); ++i) {
    for (const auto* item : samples.items) {
      if (item->size() != samples.items[0]->size()) throw Unexplained("a number of dimensions");
    }
    sizes.push_back(fit(samples.each([i](const auto& s) -> const auto& { return s[i]; })));
  }
  return sizes;
}

graph::WrappedNumber fit(const Samples<graph::WrappedNumber>& samples) {
  graph::WrappedNumber result = *samples.items[0];
  const auto fit_as = [&]<typename T>(std::type_identity<T>) {
    for (const auto* item : samples.items) {
      if (!std::holds_alternative<T>(item->number)) throw Unexplained("the kind of a number");
    }
    result.number = fit(
        samples.each([](const auto& wrapped) -> const T& { return std::get<T>(wrapped.number); }));
  };
  if (std::holds_alternative<graph::Size>(result.number)) {
    fit_as(std::type_identity<graph::Size>{});
  } else if (std::holds_alternative<graph::Real>(result.number)) {
    fit_as(std::type_identity<graph::Real>{});
  } else if (!samples.all_equal()) {
    throw Unexplained("a number");
  }
  return result;
}

graph::Argument fit(const Samples<graph::Argument>& samples);

graph::ArgumentList fit(const Samples<graph::ArgumentList>& samples) {
  for (const auto* list : samples.items) {
    if (list->size() != samples.items[0]->size()) throw Unexplained("the length of a list");
  }
  graph::ArgumentList result;
  for (std::size_t i = 0; i < samples.items[0]->size(); ++i) {
    result.push_back(fit(samples.each([i](const auto& list) -> const auto& { return list[i]; })));
  }
  return result;
}

graph::Argument fit(const Samples<graph::Argument>& samples) {
  for (const auto* argument : samples.items) {
    if (argument->content.index() != samples.items[0]->content.index()) {
      throw Unexplained("the kind of an argument");
    }
  }
  return std::visit(
      [&]<typename T>(const T&) -> graph::Argument {
        const auto contents = samples.each(
            [](const auto& argument) -> const T& { return std::get<T>(argument.content); });
        if constexpr (requires { fit(contents); }) {
          return {fit(contents)};
        } else {
          if (!contents.all_equal()) throw Unexplained("an argument");
          return graph::Argument{samples.items[0]->content};
        }
      },
      samples.items[0]->content);
}

std::string batches_text(const std::vector<std::int64_t>& batches) {
  std::string text;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const bool is_last = i + 1 == batches.size();
    text += (i == 0 ? "" : is_last ? " and " : ", ") + std::to_string(batches[i]);
  }
  return text;
}

[[noreturn]] void refuse(const std::string& where, const std::string& what,
                         const std::vector<std::int64_t>& batches) {
  throw SizeProblem(where + ": " + what + " differs between recordings (made at the batch sizes " +
                    batches_text(batches) +
                    ", with other data each) and does not grow linearly with the batch size. Where "
                    "it depends on the batch size alone, record the model at its microbatch size "
                    "(--record-at exact); where it depends on data or on the state of the program, "
                    "mark the code around it with trireme::opaque, or declare a number that "
                    "changes with the step as a step scalar");
}

/// Throws where each sample of the batch adds as many nodes.
void refuse_growth(const Samples<graph::Graph>& samples, std::size_t position) {
  const auto& [graphs, batches] = samples;
  std::vector<std::string> counts;
  std::vector<std::int64_t> numbers;
  for (const graph::Graph* graph : graphs) {
    numbers.push_back(static_cast<std::int64_t>(graph->nodes.size()));
    counts.push_back(std::to_string(graph->nodes.size()));
  }
  const std::int64_t rise = numbers[1] - numbers[0];
  const std::int64_t run = batches[1] - batches[0];
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    const bool grows =
        rise != 0 && (numbers[i] - numbers[0]) * run == rise * (batches[i] - batches[0]);
    if (!grows) return;
  }
  const std::string where =
      position == 0 ? "the first node" : name_of(graphs[0]->nodes[position - 1]);
  throw SizeProblem("the number of operators grows with the batch (" +
                    numbers_text(counts, batches) + "): a loop over samples, which has reached " +
                    where + " where batch " + std::to_string(batches[0]) +
                    " ends it. Record the model at its microbatch size (--record-at exact), write "
                    "the loop as operators on the whole batch, or mark it with trireme::opaque");
}

/// Throws where the first recording takes a buffer and the other one a constant in its place.
void refuse_replaced_buffer(const graph::Graph& first, const graph::Graph& other,
                            std::size_t position) {
  const graph::Node& a = first.nodes[position];
  const graph::Node& b = other.nodes[position];
  if (a.op != b.op || a.overload != b.overload || a.inputs.size() != b.inputs.size()) return;
  for (std::size_t i = 0; i < a.inputs.size(); ++i) {
    const auto* buffer = std::get_if<graph::ValueRef>(&a.inputs[i].content);
    const auto* constant = std::get_if<graph::ValueRef>(&b.inputs[i].content);
    if (buffer == nullptr || constant == nullptr ||
        first.values[buffer->value].source != graph::ValueSource::kBuffer ||
        other.values[constant->value].source != graph::ValueSource::kConstant) {
      continue;
    }
    const auto name =
        std::find_if(first.buffers.begin(), first.buffers.end(),
                     [&](const graph::Buffer& entry) { return entry.value == buffer->value; });
    throw SizeProblem(name_of(a) + ": it takes the buffer '" + name->name +
                      "' in one recording and a constant tensor in the next: the program has put "
                      "another tensor in its place. Write to the buffer in place (buffer.copy_()), "
                      "or mark the code around it with trireme::opaque");
  }
}

void require_same_calls(const Samples<graph::Graph>& samples) {
  const auto& first = samples.items[0]->nodes;
  for (const graph::Graph* other : samples.items) {
    for (std::size_t i = 0; i < std::max(first.size(), other->nodes.size()); ++i) {
      if (i < first.size() && i < other->nodes.size() && same_call(first[i], other->nodes[i])) {
        continue;
      }
      refuse_growth(samples, i);
      if (i < first.size() && i < other->nodes.size()) {
        refuse_replaced_buffer(*samples.items[0], *other, i);
      }
      const std::string a = i < first.size() ? name_of(first[i]) : "the end";
      const std::string b = i < other->nodes.size() ? name_of(other->nodes[i]) : "the end";
      refuse(a, "the operator (" + b + " in another recording)", samples.batches);
    }
  }
}

/// A parameter, a buffer, an input or a node's output, for messages.
std::string value_name(const graph::Graph& graph, graph::ValueId value) {
  const graph::Value& entry = graph.values[value];
  for (const graph::Node& node : graph.nodes) {
    if (entry.source == graph::ValueSource::kNode && node.id == entry.producer) {
      return "a result of " + name_of(node);
    }
  }
  for (const graph::Input& input : graph.inputs) {
    if (input.value == value) return "input '" + input.name + "'";
  }
  return "value " + std::to_string(value);
}

graph::Value fit_value(const Samples<graph::Graph>& samples, std::size_t index) {
  const auto values =
      samples.each([index](const graph::Graph& g) -> const auto& { return g.values[index]; });
  graph::Value value = *values.items[0];
  for (const graph::Value* other : values.items) {
    if (value.source != other->source || value.producer != other->producer ||
        value.dtype != other->dtype || value.requires_grad != other->requires_grad ||
        value.storage_id != other->storage_id) {
      throw Unexplained("the dtype, gradient or memory");
    }
  }
  try {
    value.shape = fit(values.each([](const auto& v) -> const auto& { return v.shape; }));
    value.strides = fit(values.each([](const auto& v) -> const auto& { return v.strides; }));
  } catch (const Unexplained& unexplained) {
    throw Unexplained(std::string("its shape (") + unexplained.what() + ")");
  }
  return value;
}

[[noreturn]] void refuse_constant(const std::string& where,
                                  const std::vector<std::int64_t>& batches) {
  throw SizeProblem(where +
                    ": it takes a constant tensor that differs between recordings (made at "
                    "the batch sizes " +
                    batches_text(batches) +
                    "): the program keeps it outside "
                    "the registered buffers and changes it, or makes it of other data. Register it "
                    "as a buffer and write to that in place (buffer.copy_()), or mark the code "
                    "around it with trireme::opaque");
}

void require_same_constants(const Samples<graph::Graph>& samples) {
  for (std::size_t i = 0; i < samples.items[0]->constants.size(); ++i) {
    for (const graph::Graph* other : samples.items) {
      if (other->constants[i] == samples.items[0]->constants[i]) continue;
      const graph::ValueId value = samples.items[0]->constants[i].value;
      for (const graph::Node& node : samples.items[0]->nodes) {
        for (const graph::Argument& argument : node.inputs) {
          const auto* ref = std::get_if<graph::ValueRef>(&argument.content);
          if (ref != nullptr && ref->value == value)
            refuse_constant(name_of(node), samples.batches);
        }
      }
      refuse_constant(value_name(*samples.items[0], value), samples.batches);
    }
  }
}

bool grows(const graph::Argument& argument) {
  if (const auto* list = std::get_if<graph::ArgumentList>(&argument.content)) {
    for (const graph::Argument& item : *list) {
      if (grows(item)) return true;
    }
  }
  if (const auto* size = std::get_if<graph::Size>(&argument.content)) return !size->is_fixed();
  if (const auto* real = std::get_if<graph::Real>(&argument.content)) return real->per_sample != 0;
  if (const auto* wrapped = std::get_if<graph::WrappedNumber>(&argument.content)) {
    const auto* size = std::get_if<graph::Size>(&wrapped->number);
    const auto* real = std::get_if<graph::Real>(&wrapped->number);
    return (size != nullptr && !size->is_fixed()) || (real != nullptr && real->per_sample != 0);
  }
  return false;
}

}  // namespace

graph::Graph generalise(const std::vector<FixedGraph>& recordings) {
  TRIREME_CHECK(recordings.size() >= 3, "a fit of two numbers needs a third recording");
  std::vector<std::int64_t> batches;
  std::vector<const graph::Graph*> graphs;
  for (const FixedGraph& recording : recordings) {
    batches.push_back(recording.batch);
    graphs.push_back(&recording.graph);
  }
  const Samples<graph::Graph> samples{graphs, batches};
  require_same_calls(samples);
  graph::Graph result = *graphs[0];
  for (std::size_t i = 0; i < result.nodes.size(); ++i) {
    graph::Node& node = result.nodes[i];
    try {
      node.inputs =
          fit(samples.each([i](const auto& g) -> const auto& { return g.nodes[i].inputs; }));
    } catch (const Unexplained& unexplained) {
      refuse(name_of(node), unexplained.what(), batches);
    }
    node.flags.batch_dependent = grows({node.inputs});
  }
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    try {
      result.values[i] = fit_value(samples, i);
    } catch (const Unexplained& unexplained) {
      refuse(value_name(result, static_cast<graph::ValueId>(i)), unexplained.what(), batches);
    }
  }
  require_same_constants(samples);
  return result;
}

}  // namespace trireme::record
