#include "trireme/engine/program/operands.h"

#include <ATen/Functions.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <string>

#include "trireme/engine/record/convert.h"
#include "trireme/error.h"

namespace trireme::program {
namespace {

using c10::TypeKind;

[[noreturn]] void misfit(const c10::Type& type) {
  throw Error(ErrorKind::kInvalidArgument,
              "an argument of the graph does not fit the operator's declared type " + type.str() +
                  "; was the graph written by another version of torch?");
}

const c10::Type& without_optional(const c10::Type& type) {
  if (const auto* optional = type.castRaw<c10::OptionalType>()) return *optional->getElementType();
  return type;
}

template <typename T>
c10::IValue typed_list(const graph::ArgumentList& items, const c10::Type& element,
                       const Place& place) {
  c10::List<T> list;
  for (const graph::Argument& item : items) list.push_back(to_ivalue(item, element, place).to<T>());
  return {std::move(list)};
}

c10::IValue list_of(const graph::ArgumentList& items, const c10::Type& element,
                    const Place& place) {
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

struct Converter {
  const c10::Type& type;
  const Place& place;

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

}  // namespace

at::Tensor to_wrapped_tensor(const graph::WrappedNumber& number, std::int64_t batch) {
  at::Tensor tensor = at::scalar_tensor(
      record::to_scalar(number, batch),
      at::TensorOptions().dtype(record::to_scalar_type(number.dtype)).device(at::kCPU));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

c10::IValue to_ivalue(const graph::Argument& argument, const c10::Type& type, const Place& place) {
  return std::visit(Converter{without_optional(type), place}, argument.content);
}

}  // namespace trireme::program
