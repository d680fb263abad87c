#include <utility>

#include "trireme/engine/record/graph_difference.h"
#include "trireme/engine/record/holes.h"
#include "trireme/engine/record/recorder.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"

// The end of a recording: losses, last checks, the trace.

namespace trireme::record::internal {

graph::ValueId Recorder::scalar_value(const at::Tensor& tensor, const std::string& name) const {
  if (!tensor.defined() || tensor.dim() != 0) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "loss '" + name + "' is " +
            (tensor.defined() ? "a tensor of " + std::to_string(tensor.dim()) + " dimensions"
                              : "undefined") +
            "; forward returns 0-dim tensors, as in mean_loss(loss.mean())");
  }
  const auto value = table_.find(tensor);
  if (!value) {
    throw Error(ErrorKind::kInvalidArgument,
                "loss '" + name + "' was not made by a recorded operator of this forward");
  }
  return *value;
}

graph::LossOutput Recorder::to_loss(const Loss& loss) const {
  const graph::ValueId value = scalar_value(loss.value, loss.name);
  if (!at::isFloatingType(loss.value.scalar_type())) {
    throw Error(ErrorKind::kInvalidArgument, "loss '" + loss.name + "' has the dtype " +
                                                 c10::toString(loss.value.scalar_type()) +
                                                 "; a loss is a floating tensor");
  }
  if (table_.values()[value].source != graph::ValueSource::kNode) {
    throw Error(ErrorKind::kInvalidArgument,
                "loss '" + loss.name + "' is not the result of an operator");
  }
  graph::LossOutput result{
      .name = loss.name, .value = value, .weight = std::nullopt, .coefficient = loss.coefficient};
  if (loss.weight.defined()) result.weight = scalar_value(loss.weight, loss.name + ".weight");
  const bool wants_gradient = graph_.mode == graph::Mode::kTrain && loss.coefficient != 0;
  if (wants_gradient && !loss.value.requires_grad()) {
    throw Error(ErrorKind::kInvalidArgument,
                "loss '" + loss.name +
                    "' depends on no trainable parameter; make it a metric, or check for no_grad "
                    "and detach() in the model");
  }
  return result;
}

graph::Output Recorder::to_output(const Loss& output) const {
  const auto value = output.value.defined() ? table_.find(output.value) : std::nullopt;
  if (!value) {
    throw Error(ErrorKind::kInvalidArgument, "output '" + output.name +
                                                 "' was not made by a recorded operator of this "
                                                 "forward, nor is it a field of the batch");
  }
  if (output.value.dim() == 0) {
    throw Error(ErrorKind::kInvalidArgument,
                "output '" + output.name +
                    "' is a 0-dim tensor; expected one row a sample, [samples, ...]");
  }
  return {output.name, *value};
}

void Recorder::take_results(const Losses& losses) {
  for (const Loss& loss : losses) {
    if (!loss.is_output) {
      graph_.losses.push_back(to_loss(loss));
    } else if (graph_.mode == graph::Mode::kEval) {
      graph_.outputs.push_back(to_output(loss));
    }
  }
  if (!graph_.losses.empty()) return;
  throw Error(ErrorKind::kInvalidArgument,
              "the model's forward returned no loss; return at least one, as in "
              "{trireme::mean_loss(loss)}");
}

Trace Recorder::finish(const Losses& losses) {
  for (const auto& [value, position] : uninitialised_) make_constant(value, position);
  take_results(losses);
  check_gradients_and_hooks();
  settle_counters();
  table_.describe();
  std::vector<graph::Node> kept;
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (!dropped_.contains(i)) kept.push_back(std::move(graph_.nodes[i]));
  }
  graph_.nodes = std::move(kept);
  Trace trace{.graph = std::move(graph_),
              .tensors = {},
              .opaques = std::move(opaques_),
              .opaque_leaves = std::move(opaque_leaves_),
              .read_counters = {}};
  for (const CounterRead& read : counter_reads_) {
    trace.read_counters.push_back(table_.tensor(read.counter));
  }
  trace.graph.values = table_.values();
  for (std::size_t i = 0; i < table_.values().size(); ++i) {
    graph::Value& value = trace.graph.values[i];
    const auto id = static_cast<graph::ValueId>(i);
    if (value.source == graph::ValueSource::kConstant) {
      value.producer = -1;
      trace.graph.constants.push_back({id, to_bytes(table_.entry(id).constant)});
      trace.tensors.push_back(table_.entry(id).constant);
    } else {
      const bool is_node = value.source == graph::ValueSource::kNode;
      trace.tensors.push_back(is_node ? at::Tensor() : table_.tensor(id));
    }
  }
  check_rescaled(trace.graph);
  name_nodes(trace.graph);
  return trace;
}

/// All objects stay alive, the activations of a whole model; what was computed from data decides nothing.
void Recorder::forget_outputs() const {
  for (const graph::ValueId output : node_.outputs) {
    if (output < 0) continue;
    const at::Tensor& tensor = table_.tensor(output);
    const auto members = table_.in_storage_of(tensor);
    const bool is_computed =
        std::all_of(members.begin(), members.end(), [&](graph::ValueId member) {
          return table_.values()[member].source == graph::ValueSource::kNode &&
                 from_data_.contains(member);
        });
    if (is_computed) forget_values(tensor);
  }
}

void Recorder::check_rescaled(const graph::Graph& graph) {
  for (const int parameter : graph::written_parameters(graph)) {
    const graph::Node* other = graph::use_beside_rows(graph, parameter);
    if (other == nullptr) continue;
    node_ = *other;
    nearest_parameter_ = graph.parameters[parameter].name;
    refuse("it uses the parameter '" + nearest_parameter_ +
               "', whose rows an embedding with a max_norm rescales in place",
           "Scale the rows that the embedding gives instead, or give the other use a parameter of "
           "its own");
  }
}

void Recorder::check_gradients_and_hooks() {
  for (const ValueTable::Object& object : table_.objects()) {
    const std::string foreign = table_.foreign_gradient(object);
    const bool is_hooked = has_hooks(object.tensor);
    if (foreign.empty() && !is_hooked) continue;
    const graph::Value& value = table_.values()[object.value];
    for (const graph::Node& node : graph_.nodes) {
      if (node.id == value.producer) node_ = node;
    }
    const auto parameter = parameter_names_.find(object.value);
    if (parameter != parameter_names_.end()) {
      node_.op = "parameter '" + parameter->second + "'";
      node_.overload.clear();
      nearest_parameter_ = parameter->second;
      if (!foreign.empty()) refuse_toggle(foreign);
    }
    refuse(!foreign.empty()
               ? foreign
               : "a gradient hook is attached to it or to its backward; a replay would lose it");
  }
}

}  // namespace trireme::record::internal
