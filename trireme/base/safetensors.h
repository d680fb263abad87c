#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/dtype.h"

namespace trireme::safetensors {

/// A tensor to be written, or in a file that was parsed: dense, C order, little-endian.
///
/// `bytes` is a view; it must outlive its use.
struct Tensor {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

using Metadata = std::map<std::string, std::string>;

/// What a file holds. Tensors in the order of their data.
struct Content {
  std::vector<Tensor> tensors;  ///< Views of the bytes that were parsed.
  Metadata metadata;
};

/// A file of the public safetensors format: 8 bytes little-endian header length, a JSON header
/// filled with spaces to a multiple of 8, then the data. Tensors lie in the order of their element
/// size, largest first, then by name, so that each is aligned; the result depends on nothing else.
/// `c128` is written as `C128`, which the public list of types lacks.
///
/// Errors   kInvalidArgument for a repeated or reserved name, a negative dimension, or bytes that
///          do not match dtype and shape.
std::vector<std::byte> to_bytes(std::vector<Tensor> tensors, const Metadata& metadata = {});

/// What `write` made.
struct Written {
  std::uint64_t bytes = 0;
  std::string sha256;  ///< Of the whole file.
};

/// Writes the file of `to_bytes` tensor by tensor, without memory for all of it. Not atomic; syncs.
///
/// Errors   those of `to_bytes` and of FileWriter.
Written write(const std::filesystem::path& path, std::vector<Tensor> tensors,
              const Metadata& metadata = {});

/// Views into `bytes`, which must outlive the result. Accepts any order of tensors, but every byte
/// of the data must belong to exactly one tensor.
///
/// origin   what is parsed (a path), for messages.
/// Errors   kCorruptData, naming the tensor: header too long (above 100 MB) or cut off, not JSON,
///          offsets out of range, overlapping or with holes, length that differs from dtype and
///          shape; kUnavailable for a type of the public list that `Dtype` lacks.
/// Cost     linear in header and tensors; the data is not touched.
Content parse(std::span<const std::byte> bytes, std::string_view origin);

}  // namespace trireme::safetensors
