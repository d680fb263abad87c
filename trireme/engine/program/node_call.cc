#include "trireme/engine/program/node_call.h"

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/List.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/jit_type.h>

#include <utility>

#include "trireme/engine/program/opaque_replay.h"
#include "trireme/engine/record/batch_norm_node.h"
#include "trireme/engine/record/compare.h"
#include "trireme/engine/record/convert.h"
#include "trireme/engine/record/generator.h"
#include "trireme/error.h"

namespace trireme::program {
namespace {

using record::batch_norm::kMomentum, record::batch_norm::kRunningMean,
    record::batch_norm::kRunningVar;

at::Tensor take_tensor(const Operand& operand, std::vector<at::Tensor>& slots) {
  if (operand.kind == Operand::Kind::kConstant) {
    return operand.constant.isNone() ? at::Tensor() : operand.constant.toTensor();
  }
  at::Tensor& slot = slots[operand.slot];
  return operand.is_last_use ? std::move(slot) : slot;
}

c10::IValue take(const Operand& operand, std::vector<at::Tensor>& slots) {
  switch (operand.kind) {
    case Operand::Kind::kConstant:
      return operand.constant;
    case Operand::Kind::kSlot:
      return {take_tensor(operand, slots)};
    case Operand::Kind::kTensorList: {
      c10::List<at::Tensor> list;
      list.reserve(operand.items.size());
      for (const Operand& item : operand.items) list.push_back(take_tensor(item, slots));
      return {std::move(list)};
    }
    case Operand::Kind::kOptionalTensorList: {
      c10::List<std::optional<at::Tensor>> list;
      list.reserve(operand.items.size());
      for (const Operand& item : operand.items) {
        at::Tensor tensor = take_tensor(item, slots);
        list.push_back(tensor.defined() ? std::optional(std::move(tensor)) : std::nullopt);
      }
      return {std::move(list)};
    }
  }
  return {};
}

void put(at::Tensor tensor, const NodeCall& call, std::size_t& next,
         std::vector<at::Tensor>& slots) {
  const int slot = call.outputs[next++];
  if (slot >= 0) slots[slot] = std::move(tensor);
}

void put_outputs(std::vector<c10::IValue>& stack, const NodeCall& call,
                 std::vector<at::Tensor>& slots) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < call.output_lists.size(); ++i) {
    if (call.output_lists[i] < 0) {
      put(stack[i].isNone() ? at::Tensor() : std::move(stack[i]).toTensor(), call, next, slots);
      continue;
    }
    const auto list = stack[i].toListRef();
    if (static_cast<int>(list.size()) != call.output_lists[i]) {
      throw Error(ErrorKind::kInvalidArgument,
                  record::name_of(*call.node) + " returned " + std::to_string(list.size()) +
                      " tensors, recorded were " + std::to_string(call.output_lists[i]));
    }
    for (const c10::IValue& item : list) put(item.toTensor(), call, next, slots);
  }
}

std::vector<c10::IValue> take_arguments(const NodeCall& call, std::vector<at::Tensor>& slots) {
  std::vector<c10::IValue> stack;
  stack.reserve(call.operands.size());
  for (const Operand& operand : call.operands) stack.push_back(take(operand, slots));
  return stack;
}

void call_operator(const NodeCall& call, std::vector<c10::IValue> stack,
                   std::vector<at::Tensor>& slots) {
  call.op->callBoxed(stack);
  put_outputs(stack, call, slots);
}

TensorList take_list(const Operand& operand, std::vector<at::Tensor>& slots) {
  TensorList list;
  for (const Operand& item : operand.items) list.push_back(take_tensor(item, slots));
  return list;
}

void call_opaque(const NodeCall& call, std::vector<at::Tensor>& slots) {
  const TensorList outputs = replay_opaque(*call.opaque, take_list(call.operands[0], slots),
                                           take_list(call.operands[1], slots));
  if (outputs.size() != call.outputs.size()) {
    throw Error(ErrorKind::kInvalidArgument,
                record::name_of(*call.node) + " returned " + std::to_string(outputs.size()) +
                    " tensors, recorded were " + std::to_string(call.outputs.size()));
  }
  std::size_t next = 0;
  for (const at::Tensor& tensor : outputs) put(tensor, call, next, slots);
}

/// Makes operands of one node's arguments.
class OperandMaker {
 public:
  OperandMaker(const graph::Node& node, const CallContext& context)
      : node_(node), context_(context) {}

  Operand make(const graph::Argument& argument, const c10::Type& type) const {
    if (const auto* ref = std::get_if<graph::ValueRef>(&argument.content)) return value(ref->value);
    const auto* list = std::get_if<graph::ArgumentList>(&argument.content);
    const c10::Type* element = element_type(type);
    if (list != nullptr && element != nullptr && is_tensor(*element)) {
      const bool optional = element->kind() == c10::TypeKind::OptionalType;
      return tensors(*list,
                     optional ? Operand::Kind::kOptionalTensorList : Operand::Kind::kTensorList);
    }
    Operand operand;
    operand.constant = to_ivalue(argument, type, context_.place);
    return operand;
  }

  Operand tensors(const graph::ArgumentList& list, Operand::Kind kind) const {
    Operand operand;
    operand.kind = kind;
    for (const graph::Argument& item : list) operand.items.push_back(make_item(item));
    return operand;
  }

 private:
  static const c10::Type* element_type(const c10::Type& type) {
    const c10::Type* inner = &type;
    if (const auto* optional = type.castRaw<c10::OptionalType>()) {
      inner = optional->getElementType().get();
    }
    const auto* list = inner->castRaw<c10::ListType>();
    return list == nullptr ? nullptr : list->getElementType().get();
  }

  static bool is_tensor(const c10::Type& type) {
    if (const auto* optional = type.castRaw<c10::OptionalType>()) {
      return optional->getElementType()->kind() == c10::TypeKind::TensorType;
    }
    return type.kind() == c10::TypeKind::TensorType;
  }

  Operand make_item(const graph::Argument& item) const {
    if (std::holds_alternative<std::monostate>(item.content)) return {};
    return make(item, *c10::TensorType::get());
  }

  Operand value(graph::ValueId id) const {
    Operand operand;
    const auto slot = context_.slot_of.find(id);
    if (slot != context_.slot_of.end()) {
      operand.kind = Operand::Kind::kSlot;
      operand.slot = slot->second;
      return operand;
    }
    const bool is_parameter = context_.graph.values[id].source == graph::ValueSource::kParameter;
    operand.constant = is_parameter ? context_.parameters(id, node_.id) : context_.tensors[id];
    return operand;
  }

  const graph::Node& node_;
  const CallContext& context_;
};

graph::BufferPolicy policy_of(const graph::Graph& graph, graph::ValueId value) {
  for (const graph::Buffer& buffer : graph.buffers) {
    if (buffer.value == value) return buffer.policy;
  }
  return graph::BufferPolicy::kReadOnly;
}

CallKind kind_of(const graph::Node& node, const graph::Graph& graph) {
  if (node.op == "opaque") return CallKind::kOpaque;
  for (graph::ValueId value : node.writes) {
    const graph::BufferPolicy policy = policy_of(graph, value);
    if (policy == graph::BufferPolicy::kBatchNorm) return CallKind::kBatchNorm;
    if (policy == graph::BufferPolicy::kCounter) return CallKind::kSkip;
  }
  return CallKind::kOperator;
}

void bind_opaque(NodeCall& call, const graph::Node& node, const CallContext& context) {
  const auto found = context.opaques.find(node.overload);
  if (found == context.opaques.end()) {
    throw Error(ErrorKind::kInvalidArgument,
                record::name_of(node) + ": no opaque function '" + node.overload +
                    "' is registered; record the model in this process");
  }
  call.opaque = found->second;
  const OperandMaker maker(node, context);
  for (const graph::Argument& list : node.inputs) {
    call.operands.push_back(
        maker.tensors(std::get<graph::ArgumentList>(list.content), Operand::Kind::kTensorList));
  }
}

void bind_operator(NodeCall& call, const graph::Node& node, const CallContext& context) {
  call.op = c10::Dispatcher::singleton().findSchema({node.op, node.overload});
  if (!call.op) {
    throw Error(ErrorKind::kInvalidArgument,
                record::name_of(node) + ": this build of torch has no operator " + node.op + "." +
                    node.overload + "; the graph was recorded with torch " +
                    context.graph.torch_version);
  }
  const auto& declared = call.op->schema().arguments();
  if (declared.size() != node.inputs.size()) {
    throw Error(ErrorKind::kInvalidArgument,
                record::name_of(node) + " has " + std::to_string(node.inputs.size()) +
                    " arguments, this build of torch declares " + std::to_string(declared.size()));
  }
  const OperandMaker maker(node, context);
  for (std::size_t i = 0; i < declared.size(); ++i) {
    call.operands.push_back(maker.make(node.inputs[i], *declared[i].real_type()));
  }
  if (call.kind == CallKind::kBatchNorm) call.operands[kMomentum].constant = 1.0;
}

}  // namespace

ModeScope::ModeScope()
    : grad_(at::GradMode::is_enabled()),
      autocast_(at::autocast::is_autocast_enabled(at::kCPU)),
      autocast_dtype_(at::autocast::get_autocast_dtype(at::kCPU)),
      now_grad_(grad_),
      now_autocast_(autocast_) {}

ModeScope::~ModeScope() {
  at::GradMode::set_enabled(grad_);
  if (now_autocast_) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, autocast_);
  at::autocast::set_autocast_dtype(at::kCPU, autocast_dtype_);
}

void ModeScope::set(const NodeCall& call) {
  if (call.flags.grad_mode != now_grad_) {
    now_grad_ = call.flags.grad_mode;
    at::GradMode::set_enabled(now_grad_);
  }
  if (call.autocast.has_value() != now_autocast_) {
    if (now_autocast_) at::autocast::clear_cache();
    now_autocast_ = call.autocast.has_value();
    at::autocast::set_autocast_enabled(at::kCPU, now_autocast_);
  }
  if (call.autocast) at::autocast::set_autocast_dtype(at::kCPU, *call.autocast);
}

void call(const NodeCall& call, std::vector<at::Tensor>& slots, std::uint64_t seed) {
  const auto run = [&] {
    if (call.kind == CallKind::kOpaque) return call_opaque(call, slots);
    call_operator(call, take_arguments(call, slots), slots);
  };
  if (call.flags.random) {
    record::with_seeded_generator(seed, run);
  } else {
    run();
  }
}

std::pair<at::Tensor, at::Tensor> call_batch_norm(const NodeCall& call,
                                                  std::vector<at::Tensor>& slots) {
  std::vector<c10::IValue> stack = take_arguments(call, slots);
  const auto zeros = [&](std::size_t index) {
    const c10::IValue& buffer = call.operands[index].constant;
    return buffer.isNone() ? at::Tensor() : at::zeros_like(buffer.toTensor());
  };
  const at::Tensor mean = zeros(kRunningMean), variance = zeros(kRunningVar);
  stack[kRunningMean] = mean;
  stack[kRunningVar] = variance;
  call_operator(call, std::move(stack), slots);
  return {mean, variance};
}

NodeCall make_call(const graph::Node& node, const CallContext& context) {
  NodeCall call;
  call.kind = kind_of(node, context.graph);
  call.id = node.id;
  call.stream_id = node.copy_of >= 0 ? node.copy_of : node.id;
  call.flags = node.flags;
  if (node.autocast) call.autocast = record::to_scalar_type(node.autocast->dtype);
  call.output_lists = node.output_lists;
  call.node = &node;
  if (call.kind == CallKind::kOpaque) {
    bind_opaque(call, node, context);
  } else {
    bind_operator(call, node, context);
  }
  for (graph::ValueId value : node.outputs) {
    const auto slot = context.slot_of.find(value);
    call.outputs.push_back(slot == context.slot_of.end() ? -1 : slot->second);
  }
  return call;
}

}  // namespace trireme::program
