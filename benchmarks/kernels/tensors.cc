#include "benchmarks/kernels/tensors.h"

#include <algorithm>
#include <charconv>

#include "trireme/base/mapped_file.h"
#include "trireme/base/safetensors.h"
#include "trireme/kernels/half.h"

namespace trireme::kernels::bench {
namespace {

std::size_t count_bytes(Dtype dtype, const std::vector<std::int64_t>& shape) {
  std::size_t bytes = size_bytes(dtype);
  for (const std::int64_t size : shape) bytes *= static_cast<std::size_t>(size);
  return bytes;
}

}  // namespace

template <>
Dtype Tensors::dtype_of<float>() {
  return Dtype::kF32;
}
template <>
Dtype Tensors::dtype_of<double>() {
  return Dtype::kF64;
}
template <>
Dtype Tensors::dtype_of<Bf16>() {
  return Dtype::kBf16;
}
template <>
Dtype Tensors::dtype_of<F16>() {
  return Dtype::kF16;
}
template <>
Dtype Tensors::dtype_of<std::int64_t>() {
  return Dtype::kI64;
}
template <>
Dtype Tensors::dtype_of<std::int32_t>() {
  return Dtype::kI32;
}
template <>
Dtype Tensors::dtype_of<std::uint8_t>() {
  return Dtype::kU8;
}

const HostTensor& Tensors::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    throw Error(ErrorKind::kInvalidArgument, "there is no tensor \"" + name + "\"");
  }
  return found->second;
}

double Tensors::number(const std::string& option) const {
  const auto found = options.find(option);
  if (found == options.end()) {
    throw Error(ErrorKind::kInvalidArgument, "there is no option \"" + option + "\"");
  }
  const std::string& text = found->second;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Error(ErrorKind::kInvalidArgument,
                "option \"" + option + "\" is no number: \"" + text + "\"");
  }
  return value;
}

HostTensor& Tensors::insert(const std::string& name, Dtype dtype, std::vector<std::int64_t> shape) {
  std::vector<std::byte> bytes(count_bytes(dtype, shape));
  return tensors_[name] = {dtype, std::move(shape), std::move(bytes)};
}

const HostTensor& Tensors::find(const std::string& name, Dtype dtype) const {
  const HostTensor& tensor = at(name);
  if (tensor.dtype != dtype) {
    throw Error(ErrorKind::kInvalidArgument, "tensor \"" + name + "\" is of " +
                                                 std::string(to_text(tensor.dtype)) + ", not " +
                                                 std::string(to_text(dtype)));
  }
  return tensor;
}

void Tensors::write(const std::filesystem::path& path) const {
  std::vector<safetensors::Tensor> list;
  for (const auto& [name, tensor] : tensors_) {
    list.push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
  }
  safetensors::write(path, std::move(list), options);
}

Tensors Tensors::read(const std::filesystem::path& path) {
  const MappedFile file(path);
  const safetensors::Content content = safetensors::parse(file.bytes(), path.string());
  Tensors tensors;
  tensors.options = content.metadata;
  for (const safetensors::Tensor& tensor : content.tensors) {
    HostTensor& own = tensors.insert(tensor.name, tensor.dtype, tensor.shape);
    std::copy(tensor.bytes.begin(), tensor.bytes.end(), own.bytes.begin());
  }
  return tensors;
}

}  // namespace trireme::kernels::bench
