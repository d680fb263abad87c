#include "trireme/plan/graph/argument_json.h"

#include <cmath>

namespace trireme::graph {
namespace {

constexpr std::int64_t kMaxValue = std::numeric_limits<int>::max();

/// A real as part of `{"real": ...}` or `{"complex": ...}`.
Json affine_to_json(const Real& real) {
  if (real.per_sample == 0) return real_to_json(real.fixed);
  return {{"per_sample", real_to_json(real.per_sample)}, {"fixed", real_to_json(real.fixed)}};
}

Json to_json(const Real& real) {
  if (real.per_sample == 0 && std::isfinite(real.fixed)) return real.fixed;
  return {{"real", affine_to_json(real)}};
}

Json to_json(const std::complex<double>& number) {
  return {{"complex", {real_to_json(number.real()), real_to_json(number.imag())}}};
}

/// One overload per kind of content.
struct Writer {
  Json operator()(std::monostate /*nothing*/) const { return nullptr; }
  Json operator()(const ValueRef& tensor) const { return {{"value", tensor.value}}; }
  Json operator()(bool flag) const { return flag; }
  Json operator()(const Size& size) const { return graph::to_json(size); }
  Json operator()(const Real& real) const { return to_json(real); }
  Json operator()(const std::complex<double>& number) const { return to_json(number); }
  Json operator()(const std::string& text) const { return text; }
  Json operator()(const WrappedNumber& wrapped) const {
    return {{"wrapped", std::visit(*this, wrapped.number)},
            {"dtype", trireme::to_text(wrapped.dtype)}};
  }
  Json operator()(Dtype dtype) const { return {{"dtype", trireme::to_text(dtype)}}; }
  Json operator()(const DeviceName& device) const { return {{"device", device.name}}; }
  Json operator()(const LayoutName& layout) const { return {{"layout", layout.name}}; }
  Json operator()(const MemoryFormatName& format) const { return {{"memory_format", format.name}}; }
  Json operator()(const ArgumentList& list) const {
    Json json = Json::array();
    for (const Argument& argument : list) json.push_back(graph::to_json(argument));
    return json;
  }
};

Real read_affine(const JsonField& field) {
  if (!field.json().is_object()) return {0, field.real()};
  JsonObject object(field);
  const Real real{object.required("per_sample").real(), object.required("fixed").real()};
  object.finish();
  return real;
}

std::complex<double> read_complex(const JsonField& field) {
  const std::vector<JsonField> parts = field.items();
  if (parts.size() != 2) field.fail_expected("a real and an imaginary part");
  return {parts[0].real(), parts[1].real()};
}

WrappedNumber read_wrapped(JsonObject& object, const JsonField& field) {
  WrappedNumber wrapped{false, dtype_from_json(object.required("dtype"))};
  const Argument number = argument_from_json(field);
  if (const auto* flag = std::get_if<bool>(&number.content)) {
    wrapped.number = *flag;
  } else if (const auto* size = std::get_if<Size>(&number.content)) {
    wrapped.number = *size;
  } else if (const auto* real = std::get_if<Real>(&number.content)) {
    wrapped.number = *real;
  } else if (const auto* complex = std::get_if<std::complex<double>>(&number.content)) {
    wrapped.number = *complex;
  } else {
    field.fail_expected("a number");
  }
  return wrapped;
}

/// An argument that is written as an object: its kind is the name of its field.
Argument::Content read_object(const JsonField& field) {
  JsonObject object(field);
  const auto with = [&object](std::string_view name) { return object.optional(name); };
  Argument::Content content;
  if (const auto value = with("value")) {
    content = ValueRef{value->index(0, kMaxValue)};
  } else if (const auto wrapped = with("wrapped")) {
    content = read_wrapped(object, *wrapped);
  } else if (const auto dtype = with("dtype")) {
    content = dtype_from_json(*dtype);
  } else if (with("per_sample")) {
    return size_from_json(field);
  } else if (const auto real = with("real")) {
    content = read_affine(*real);
  } else if (const auto complex = with("complex")) {
    content = read_complex(*complex);
  } else if (const auto device = with("device")) {
    content = DeviceName{device->text()};
  } else if (const auto layout = with("layout")) {
    content = LayoutName{layout->text()};
  } else if (const auto format = with("memory_format")) {
    content = MemoryFormatName{format->text()};
  } else {
    field.fail_expected("an argument (see docs/formats.md)");
  }
  object.finish();
  return content;
}

}  // namespace

Json to_json(const Size& size) {
  if (size.is_fixed()) return size.fixed;
  return {{"per_sample", size.per_sample}, {"fixed", size.fixed}};
}

Size size_from_json(const JsonField& field) {
  if (!field.json().is_object()) return {0, field.integer()};
  JsonObject object(field);
  const Size size{object.required("per_sample").integer(), object.required("fixed").integer()};
  object.finish();
  return size;
}

Json to_json(const Argument& argument) { return std::visit(Writer{}, argument.content); }

Argument argument_from_json(const JsonField& field) {
  const Json& json = field.json();
  if (json.is_null()) return {};
  if (json.is_boolean()) return {field.boolean()};
  if (json.is_number_integer()) return {Size{0, field.integer()}};
  if (json.is_number_float()) return {Real{0, field.real()}};
  if (json.is_string()) return {field.text()};
  if (json.is_array()) return {field.list(argument_from_json)};
  return {read_object(field)};
}

}  // namespace trireme::graph
