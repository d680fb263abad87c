#include "trireme/engine/record/recorder.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <torch/version.h>

#include <algorithm>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/engine/record/deferred_init.h"
#include "trireme/engine/record/generalise.h"
#include "trireme/engine/record/holes.h"
#include "trireme/engine/record/packed_sequences.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::record {
namespace internal {
namespace {

std::int64_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : static_cast<std::int64_t>(tensor._version());
}

std::optional<graph::Autocast> current_autocast() {
  if (!at::autocast::is_autocast_enabled(at::kCPU)) return std::nullopt;
  return graph::Autocast{"cpu", to_dtype(at::autocast::get_autocast_dtype(at::kCPU))};
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) { return to_bytes(a) == to_bytes(b); }

graph::Argument to_argument_list(graph::ArgumentList items) { return {std::move(items)}; }

}  // namespace

Recorder::Recorder(const Model& model, const Batch& batch, graph::Mode mode) {
  graph_.mode = mode;
  graph_.torch_version = TORCH_VERSION;
  forgets_ = static_cast<bool>(model.fill);
  add_registered(model);
  add_batch(model, batch);
}

void Recorder::add_registered(const Model& model) {
  for (const auto& [name, tensor] : model.parameters) {
    if (!tensor.defined()) continue;
    if (const auto known = table_.find(tensor)) {
      for (graph::Parameter& parameter : graph_.parameters) {
        if (parameter.value == *known) parameter.aliases.push_back(name);
      }
      continue;
    }
    if (!table_.in_storage_of(tensor).empty()) {
      throw Error(ErrorKind::kInvalidArgument,
                  "parameter '" + name +
                      "' shares memory with another parameter without being the same tensor; "
                      "register one tensor under both names to tie them");
    }
    const graph::ValueId id = table_.add(tensor, graph::ValueSource::kParameter, -1);
    graph_.parameters.push_back({.name = name, .aliases = {}, .value = id});
    parameter_names_[id] = name;
    from_data_.insert(id);
  }
  for (const auto& [name, tensor] : model.buffers) {
    if (!tensor.defined()) continue;
    if (const auto known = table_.find(tensor)) {
      for (graph::Buffer& buffer : graph_.buffers) {
        if (buffer.value == *known) buffer.aliases.push_back(name);
      }
      continue;
    }
    const graph::ValueId id = table_.add(tensor, graph::ValueSource::kBuffer, -1);
    graph_.buffers.push_back({.name = name, .aliases = {}, .value = id});
    from_data_.insert(id);
    buffer_data_[id] = tensor.detach().clone();
    if (tensor.dim() == 0 && tensor.scalar_type() == at::kLong) {
      initial_counters_[id] = tensor.item<std::int64_t>();
    }
  }
}

void Recorder::add_batch(const Model& model, const Batch& batch) {
  for (const auto& [name, tensor] : batch.tensors()) {
    const bool is_scalar = std::any_of(model.step_scalars.begin(), model.step_scalars.end(),
                                       [&](const StepScalar& s) { return s.name == name; });
    const auto dim = model.batch_dims.find(name);
    const auto source = is_scalar ? graph::ValueSource::kStepScalar : graph::ValueSource::kInput;
    const graph::ValueId id = table_.add(tensor, source, -1);
    from_data_.insert(id);
    if (!is_scalar && num_samples_ == 0 && tensor.dim() > 0) {
      num_samples_ = tensor.size(dim == model.batch_dims.end() ? 0 : dim->second);
    }
    graph_.inputs.push_back(
        {.name = name,
         .value = id,
         .batch_dim = is_scalar ? -1 : (dim == model.batch_dims.end() ? 0 : dim->second)});
  }
}

void Recorder::begin_node(int index, std::string op, std::string overload) {
  node_ = {.id = index, .op = std::move(op), .overload = std::move(overload)};
  node_.flags.grad_mode = at::GradMode::is_enabled();
  node_.autocast = current_autocast();
  inputs_.clear();
}

void Recorder::before(int index, const at::RecordFunction& call) {
  const auto name = call.operator_name();
  begin_node(index, name ? name->name : call.name(), name ? name->overload_name : "");
  if (!name) refuse(kForeignRegion);
  if (is_functorch_active()) refuse("it runs under a functorch transform (vmap, grad)");
  const auto op = c10::Dispatcher::singleton().findSchema(*name);
  if (!op) refuse("its operator is not registered with the dispatcher");
  const bool is_by_data = depends_on_data(what_decides_shape(*name, call.inputs()));
  if (const auto hole = hole_of_operator(*name)) {
    if (*hole != kShapeFromData) refuse(*hole);
    if (is_by_data) refuse_data(*hole);
  }
  node_.flags.random = op->hasTag(at::Tag::nondeterministic_seeded);
  // The tag is on every kind of indexing; only masks make it depend on data. Rows of tokens are ragged.
  const bool is_dynamic = name->name != "aten::index" && name->name != kTokenRows &&
                          !has_given_classes(*name, call.inputs()) &&
                          op->hasTag(at::Tag::dynamic_output_shape);
  if (is_by_data && (is_dynamic || picks_by_mask(*name, call.inputs()))) {
    refuse_data(kShapeFromData);
  }
  take_inputs(op->schema(), call.inputs());
  // The forward changes it now, and is no step of a training.
  if (node_.op == graph::kRescaleRows) rescaled_.keep(inputs_[0].tensor);
}

void Recorder::after(int index, const at::RecordFunction& call) {
  TRIREME_CHECK(node_.id == index, "operator " + std::to_string(index) + " ends out of order");
  take_writes();
  const auto hole = hole_of_outputs(*call.operator_name(), call.outputs());
  if (hole == OutputKind::kValueLeaves) return take_answer(call.outputs());
  if (hole == OutputKind::kMetadata) return;
  take_outputs(call.outputs());
  follow_data();
  settle_uninitialised();
  if (node_.op == kPad) take_padded_length(node_, inputs_[1].tensor.size(0));
  if (forgets_) forget_outputs();
  end_node();
}

void Recorder::before_opaque(int index, const OpaqueCall& call) {
  begin_node(index, "opaque", call.function->name);
  node_.flags.random = true;
  const auto [known, is_new] = opaques_.emplace(call.function->name, call.function);
  if (!is_new && known->second != call.function) {
    refuse("two opaque functions have the same name");
  }
  graph::ArgumentList inputs, parameters, buffers;
  for (const at::Tensor& tensor : call.inputs) inputs.push_back(to_argument(tensor));
  for (const NamedTensor& item : call.function->parameters) {
    if (!table_.find(item.tensor)) refuse("its parameter '" + item.name + "' is not registered");
    parameters.push_back(to_argument(item.tensor));
  }
  for (const NamedTensor& item : call.function->buffers) {
    if (!table_.find(item.tensor)) refuse("its buffer '" + item.name + "' is not registered");
    buffers.push_back(to_argument(item.tensor));
  }
  for (graph::ArgumentList* list : {&inputs, &parameters, &buffers}) {
    node_.inputs.push_back(to_argument_list(std::move(*list)));
  }
}

void Recorder::after_opaque(int, const OpaqueCall& call) {
  take_writes();
  for (const graph::ValueId written : node_.writes) {
    if (table_.values()[written].source != graph::ValueSource::kBuffer) {
      refuse("it writes to one of its inputs; clone() it first");
    }
  }
  for (const at::Tensor& leaf : unlisted_leaves(call)) {
    if (table_.find(leaf)) refuse(kCapturedLeaf, "");
    opaque_leaves_.push_back({call.function->name, leaf});
  }
  node_.output_lists.push_back(static_cast<int>(call.outputs.size()));
  for (const at::Tensor& tensor : call.outputs) take_output(tensor);
  follow_data();
  settle_uninitialised();
  end_node();
}

graph::Argument Recorder::to_argument(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  if (!table_.find(tensor) && tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    graph::Argument number = to_constant(c10::IValue(tensor.item()), *c10::NumberType::get());
    graph::WrappedNumber wrapped{.number = {}, .dtype = to_dtype(tensor.scalar_type())};
    std::visit(
        [&]<typename T>(const T& content) {
          if constexpr (requires { wrapped.number = content; }) wrapped.number = content;
        },
        number.content);
    return {wrapped};
  }
  std::string problem;
  const graph::ValueId value = table_.find_or_add_constant(tensor, problem);
  if (!problem.empty()) refuse("it takes " + problem);
  const auto parameter = parameter_names_.find(value);
  if (parameter != parameter_names_.end()) nearest_parameter_ = parameter->second;
  problem = table_.problem_of_use(tensor);
  if (!problem.empty() && parameter != parameter_names_.end()) refuse_toggle(problem);
  if (!problem.empty()) refuse(problem);
  inputs_.push_back({tensor, value, version_of(tensor), false});
  return {graph::ValueRef{value}};
}

graph::Argument Recorder::to_argument(const c10::IValue& value, const c10::Type& type) {
  if (value.isTensor()) return to_argument(value.toTensor());
  if (!value.isTensorList() && !value.isOptionalTensorList()) return to_constant(value, type);
  graph::ArgumentList items;
  for (const c10::IValue& item : value.toListRef()) {
    items.push_back(item.isNone() ? graph::Argument{} : to_argument(item.toTensor()));
  }
  return {std::move(items)};
}

void Recorder::take_inputs(const c10::FunctionSchema& schema,
                           c10::ArrayRef<const c10::IValue> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const c10::Argument& declared = schema.arguments()[i];
    const std::size_t first = inputs_.size();
    node_.inputs.push_back(to_argument(inputs[i], *declared.real_type()));
    const bool writes = declared.alias_info() != nullptr && declared.alias_info()->isWrite();
    for (std::size_t t = first; t < inputs_.size(); ++t) inputs_[t].declared_write = writes;
  }
}

void Recorder::take_writes() {
  for (const InputTensor& input : inputs_) {
    bool written = input.declared_write || version_of(input.tensor) != input.version;
    const auto buffer = buffer_data_.find(input.value);
    // Batch norm writes its statistics without telling anyone: only the data shows it.
    if (buffer != buffer_data_.end() && !same_bytes(buffer->second, input.tensor)) {
      written = true;
      buffer->second = input.tensor.detach().clone();
    }
    if (!written ||
        std::find(node_.writes.begin(), node_.writes.end(), input.value) != node_.writes.end()) {
      continue;
    }
    node_.writes.push_back(input.value);
    table_.take_write(input.tensor);
    for (graph::ValueId member : table_.in_storage_of(input.tensor)) {
      const graph::ValueSource source = table_.values()[member].source;
      if (source == graph::ValueSource::kParameter && node_.op != graph::kRescaleRows) {
        refuse("it writes to a parameter",
               "Only the optimizer may change parameters: replicas and other stages would not see "
               "the write. Make the tensor a buffer");
      }
      if (source == graph::ValueSource::kConstant && table_.values()[member].producer < 0) {
        refuse("it writes to a tensor that is not registered; make it a buffer");
      }
    }
  }
}

void Recorder::take_outputs(const std::vector<c10::IValue>& outputs) {
  for (const c10::IValue& output : outputs) {
    if (output.isTensorList()) {
      node_.output_lists.push_back(static_cast<int>(output.toListRef().size()));
      for (const c10::IValue& item : output.toListRef()) take_output(item.toTensor());
    } else {
      node_.output_lists.push_back(-1);
      take_output(output.isNone() ? at::Tensor() : output.toTensor());
    }
  }
}

void Recorder::take_output(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    node_.outputs.push_back(-1);
    return;
  }
  at::Tensor memory_of;
  for (const InputTensor& input : inputs_) {
    if (tensor.has_storage() && input.tensor.has_storage() && tensor.is_alias_of(input.tensor)) {
      node_.flags.view = true;
      memory_of = input.tensor;
    }
  }
  if (const auto known = table_.find(tensor)) {
    node_.outputs.push_back(*known);
    return;
  }
  node_.outputs.push_back(table_.add(tensor, graph::ValueSource::kNode, node_.id, memory_of));
}

/// The first operator that reads memory of an empty() makes it a constant, unless one wrote before:
/// its data came from host code (`torch::tensor({...})`). Views of it decide nothing.
void Recorder::settle_uninitialised() {
  for (const InputTensor& input : inputs_) {
    const auto members = table_.in_storage_of(input.tensor);
    const auto pending = std::find_if(members.begin(), members.end(), [&](graph::ValueId member) {
      return uninitialised_.contains(member);
    });
    if (pending == members.end()) continue;
    const bool written =
        std::any_of(node_.writes.begin(), node_.writes.end(), [&](graph::ValueId value) {
          return std::find(members.begin(), members.end(), value) != members.end();
        });
    if (!written && node_.flags.view) continue;
    if (!written) make_constant(*pending, uninitialised_[*pending]);
    uninitialised_.erase(*pending);
  }
}

void Recorder::make_constant(graph::ValueId value, std::size_t position) {
  dropped_.insert(position);
  table_.values()[value].source = graph::ValueSource::kConstant;
  table_.entry(value).constant = table_.tensor(value).detach().clone();
}

void Recorder::end_node() {
  // An operator that throws ends without outputs.
  if (makes_uninitialised_memory(node_.op) && !node_.outputs.empty()) {
    uninitialised_[node_.outputs[0]] = graph_.nodes.size();
  }
  graph_.nodes.push_back(std::move(node_));
}

std::string Recorder::place_text() const {
  return nearest_parameter_.empty() ? "before any parameter is used"
                                    : "near parameter '" + nearest_parameter_ + "'";
}

void Recorder::refuse_toggle(const std::string& what) const {
  refuse("it takes the parameter '" + nearest_parameter_ + "', whose " + what,
         "Where one use is to have no gradient, give that operator parameter.detach(); freeze a "
         "parameter for good before training. Where a loss is for some of the parameters alone, in "
         "steps of its own (the two players of a GAN), return all losses and say which moves what: "
         "OptimizerOptions::turns, --turn");
}

void Recorder::refuse(const std::string& what, const std::string& remedy) const {
  throw Error(ErrorKind::kInvalidArgument, refusal(what, remedy));
}

void Recorder::refuse_data(const std::string& what) const {
  throw DataProblem(refusal(what, ""), kOpaqueRemedy);
}

std::string Recorder::refusal(const std::string& what, const std::string& remedy) const {
  const std::string op =
      node_.op + (node_.overload.empty() || node_.op == "opaque" ? "" : "." + node_.overload);
  return "cannot record " + op + " (operator " + std::to_string(node_.id) + ", " + place_text() +
         "): " + what + (remedy.empty() ? "" : ". " + remedy);
}

void Recorder::explain(const c10::Error& failure) const {
  const std::string op = graph_.nodes.empty() ? "" : graph_.nodes.back().op;
  const ErrorKind kind = kind_of(failure);
  throw SizeProblem(
      kind,
      "forward failed on a batch of " + std::to_string(num_samples_) + " samples, " +
          (op.empty() ? std::string("before its first operator")
                      : "in or after " + op + " (operator " +
                            std::to_string(graph_.nodes.back().id) + ", " + place_text() + ")") +
          ": " + text_of(failure) + advice(kind));
}

}  // namespace internal

Trace trace(const Model& model, const Batch& batch, graph::Mode mode) {
  const ModeGuard in_mode(model, mode);
  internal::Recorder recorder(model, batch, mode);
  Losses losses;
  {
    const Observation observation(recorder);
    const c10::AutoGradMode grad_mode(mode == graph::Mode::kTrain);
    try {
      losses = model.forward(batch);
    } catch (const c10::Error& failure) {
      observation.rethrow();  // A refusal explains more than what it led to.
      recorder.explain(failure);
    } catch (...) {
      observation.rethrow();
      throw;
    }
    observation.rethrow();
  }
  return recorder.finish(losses);
}

}  // namespace trireme::record
