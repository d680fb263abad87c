// The compilation of a node: its arguments, as the operator's schema wants them.

#include <ATen/Functions.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <string>
#include <utility>

#include "trireme/engine/program/node_call.h"
#include "trireme/engine/record/buffer_policies.h"
#include "trireme/engine/record/graph_difference.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/error.h"

namespace trireme::program {
namespace {

using c10::TypeKind;
using record::batch_norm::kMomentum;

[[noreturn]] void misfit(const c10::Type& type) {
  throw Error(ErrorKind::kInvalidArgument,
              "an argument of the graph does not fit the operator's declared type " + type.str() +
                  "; was the graph written by another version of torch?");
}

const c10::Type& without_optional(const c10::Type& type) {
  if (const auto* optional = type.castRaw<c10::OptionalType>()) return *optional->getElementType();
  return type;
}

/// A constant argument as the operator's schema wants it. Inverse of record::to_constant.
///
/// argument   holds no value reference.
/// Errors     kInvalidArgument where it does not fit the declared type.
c10::IValue to_ivalue(const graph::Argument& argument, const c10::Type& type,
                      const BatchOnDevice& place);

template <typename T>
c10::IValue typed_list(const graph::ArgumentList& items, const c10::Type& element,
                       const BatchOnDevice& place) {
  c10::List<T> list;
  for (const graph::Argument& item : items) list.push_back(to_ivalue(item, element, place).to<T>());
  return {std::move(list)};
}

c10::IValue list_of(const graph::ArgumentList& items, const c10::Type& element,
                    const BatchOnDevice& place) {
  switch (element.kind()) {
    case TypeKind::IntType:
    case TypeKind::SymIntType:
    case TypeKind::ScalarTypeType:
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType:
      return typed_list<std::int64_t>(items, element, place);
    case TypeKind::FloatType:
      return typed_list<double>(items, element, place);
    case TypeKind::BoolType:
      return typed_list<bool>(items, element, place);
    case TypeKind::NumberType:
      return typed_list<at::Scalar>(items, element, place);
    case TypeKind::StringType:
      return typed_list<std::string>(items, element, place);
    default:
      misfit(element);
  }
}

/// A wrapped number as the 0-dim tensor that torch makes of it.
at::Tensor to_wrapped_tensor(const graph::WrappedNumber& number, std::int64_t batch) {
  at::Tensor tensor = at::scalar_tensor(
      record::to_scalar(number, batch),
      at::TensorOptions().dtype(record::to_scalar_type(number.dtype)).device(at::kCPU));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

struct Converter {
  const c10::Type& type;
  const BatchOnDevice& place;

  c10::IValue operator()(std::monostate) const { return {}; }
  c10::IValue operator()(const graph::ValueRef&) const { misfit(type); }
  c10::IValue operator()(bool flag) const { return {flag}; }
  c10::IValue operator()(const graph::Size& size) const {
    const std::int64_t number = size.at(place.batch);
    if (type.kind() == TypeKind::FloatType) return {static_cast<double>(number)};
    return {number};
  }
  c10::IValue operator()(const graph::Real& real) const {
    if (type.kind() == TypeKind::IntType) misfit(type);
    return {real.at(place.batch)};
  }
  c10::IValue operator()(const std::complex<double>& number) const {
    return {c10::complex<double>(number.real(), number.imag())};
  }
  c10::IValue operator()(const std::string& text) const { return {text}; }
  c10::IValue operator()(const graph::WrappedNumber& number) const {
    return {to_wrapped_tensor(number, place.batch)};
  }
  c10::IValue operator()(Dtype dtype) const {
    return {static_cast<std::int64_t>(record::to_scalar_type(dtype))};
  }
  c10::IValue operator()(const graph::DeviceName&) const { return {place.device}; }
  c10::IValue operator()(const graph::LayoutName& layout) const {
    return {static_cast<std::int64_t>(record::to_layout(layout.name))};
  }
  c10::IValue operator()(const graph::MemoryFormatName& format) const {
    return {static_cast<std::int64_t>(record::to_memory_format(format.name))};
  }
  c10::IValue operator()(const graph::ArgumentList& items) const {
    const auto* list = type.castRaw<c10::ListType>();
    if (list == nullptr) misfit(type);
    return list_of(items, *list->getElementType(), place);
  }
};

c10::IValue to_ivalue(const graph::Argument& argument, const c10::Type& type,
                      const BatchOnDevice& place) {
  return std::visit(Converter{without_optional(type), place}, argument.content);
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
