#include "trireme/engine/record/torch_terms.h"

#include <ATen/Functions.h>
#include <ATen/core/jit_type.h>

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "trireme/error.h"

namespace trireme::record {

namespace {

constexpr std::array<std::pair<Dtype, at::ScalarType>, 12> kDtypes = {
    {{Dtype::kF64, at::kDouble},
     {Dtype::kF32, at::kFloat},
     {Dtype::kF16, at::kHalf},
     {Dtype::kBf16, at::kBFloat16},
     {Dtype::kI64, at::kLong},
     {Dtype::kI32, at::kInt},
     {Dtype::kI16, at::kShort},
     {Dtype::kI8, at::kChar},
     {Dtype::kU8, at::kByte},
     {Dtype::kBool, at::kBool},
     {Dtype::kC64, at::kComplexFloat},
     {Dtype::kC128, at::kComplexDouble}}};

constexpr std::array<std::pair<std::string_view, at::Layout>, 3> kLayouts = {
    {{"strided", at::kStrided}, {"sparse", at::kSparse}, {"mkldnn", at::kMkldnn}}};

constexpr std::array<std::pair<std::string_view, at::MemoryFormat>, 4> kMemoryFormats = {
    {{"contiguous", at::MemoryFormat::Contiguous},
     {"preserve", at::MemoryFormat::Preserve},
     {"channels_last", at::MemoryFormat::ChannelsLast},
     {"channels_last_3d", at::MemoryFormat::ChannelsLast3d}}};

[[noreturn]] void unknown(const char* what, std::string_view which) {
  throw Error(ErrorKind::kInvalidArgument,
              std::string("Trireme has no name for the ") + what + " '" + std::string(which) + "'");
}

template <typename Table, typename Name>
auto find_second(const Table& table, const Name& name, const char* what) {
  for (const auto& [first, second] : table) {
    if (first == name) return second;
  }
  unknown(what, name);
}

template <typename Table, typename Item>
std::string find_first(const Table& table, Item item, const char* what) {
  for (const auto& [first, second] : table) {
    if (second == item) return std::string(first);
  }
  unknown(what, std::to_string(static_cast<int>(item)));
}

graph::Argument to_integer(std::int64_t number, const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::ScalarTypeType:
      return {to_dtype(static_cast<at::ScalarType>(number))};
    case c10::TypeKind::LayoutType:
      return {graph::LayoutName{to_layout_name(static_cast<at::Layout>(number))}};
    case c10::TypeKind::MemoryFormatType:
      return {
          graph::MemoryFormatName{to_memory_format_name(static_cast<at::MemoryFormat>(number))}};
    default:
      return {graph::Size{0, number}};
  }
}

const c10::Type& without_optional(const c10::Type& type) {
  if (const auto* optional = type.castRaw<c10::OptionalType>()) return *optional->getElementType();
  return type;
}

graph::Argument to_list(const c10::IValue& value, const c10::Type& type) {
  const auto* list = type.castRaw<c10::ListType>();
  graph::ArgumentList items;
  for (const c10::IValue& item : value.toListRef()) {
    items.push_back(to_constant(item, list != nullptr ? *list->getElementType() : type));
  }
  return {std::move(items)};
}

}  // namespace

Dtype to_dtype(at::ScalarType type) {
  for (const auto& [dtype, scalar_type] : kDtypes) {
    if (scalar_type == type) return dtype;
  }
  unknown("dtype", c10::toString(type));
}

at::ScalarType to_scalar_type(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)].second;
}

std::string to_layout_name(at::Layout layout) { return find_first(kLayouts, layout, "layout"); }
at::Layout to_layout(std::string_view name) { return find_second(kLayouts, name, "layout"); }

std::string to_memory_format_name(at::MemoryFormat format) {
  return find_first(kMemoryFormats, format, "memory format");
}
at::MemoryFormat to_memory_format(std::string_view name) {
  return find_second(kMemoryFormats, name, "memory format");
}

graph::Argument to_constant(const c10::IValue& value, const c10::Type& declared) {
  const c10::Type& type = without_optional(declared);
  if (value.isNone()) return {};
  if (value.isGenerator()) {
    throw Error(ErrorKind::kInvalidArgument,
                "a random operator takes a generator of its own, whose state a replay cannot "
                "repeat; leave it out (every random node has a stream of its own)");
  }
  if (value.isBool()) return {value.toBool()};
  if (value.isInt()) return to_integer(value.toInt(), type);
  if (value.isSymInt()) return to_integer(value.toSymInt().expect_int(), type);
  if (value.isDouble()) return {graph::Real{0, value.toDouble()}};
  if (value.isComplexDouble()) {
    return {std::complex<double>(value.toComplexDouble().real(), value.toComplexDouble().imag())};
  }
  if (value.isString()) return {value.toStringRef()};
  if (value.isDevice()) return {graph::DeviceName{value.toDevice().str()}};
  if (value.isList()) return to_list(value, type);
  throw Error(ErrorKind::kInvalidArgument,
              "an argument of type " + value.tagKind() + " cannot be written to a graph");
}

std::vector<std::byte> to_bytes(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().cpu().contiguous().resolve_conj().resolve_neg();
  std::vector<std::byte> bytes(dense.nbytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), dense.const_data_ptr(), bytes.size());
  return bytes;
}

at::Tensor to_tensor(std::span<const std::byte> bytes, Dtype dtype, at::IntArrayRef shape) {
  at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(to_scalar_type(dtype)));
  if (tensor.nbytes() != bytes.size()) {
    throw Error(ErrorKind::kCorruptData, "a tensor of " + std::to_string(tensor.nbytes()) +
                                             " bytes is described by " +
                                             std::to_string(bytes.size()));
  }
  if (!bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

c10::Scalar to_scalar(const graph::WrappedNumber& number, std::int64_t batch) {
  if (const auto* flag = std::get_if<bool>(&number.number)) return {*flag};
  if (const auto* size = std::get_if<graph::Size>(&number.number)) return {size->at(batch)};
  if (const auto* real = std::get_if<graph::Real>(&number.number)) return {real->at(batch)};
  const auto complex = std::get<std::complex<double>>(number.number);
  return {c10::complex<double>(complex.real(), complex.imag())};
}

ErrorKind kind_of(const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
      text.find("not enough memory") != std::string_view::npos) {
    return ErrorKind::kResourceExhausted;
  }
  // What torch says where a device is asked for that it was built without.
  const bool lacks_device = text.find("not linked with support for") != std::string_view::npos ||
                            text.find("not compiled with CUDA") != std::string_view::npos;
  return lacks_device ? ErrorKind::kUnavailable : ErrorKind::kModelFailure;
}

std::string advice(ErrorKind kind) {
  if (kind != ErrorKind::kUnavailable) return "";
  return "; this build of torch has no such device: keep model and data on the CPU, or build "
         "against a torch that has it";
}

std::string text_of(const c10::Error& error) {
  std::string text = error.what_without_backtrace();
  while (!text.empty() && (text.back() == '.' || text.back() == '\n')) text.pop_back();
  return text;
}

}  // namespace trireme::record
