#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/dtype.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::record {

/// Torch's names for things and the graph's, both ways. Each throws kInvalidArgument, naming what
/// came, where there is no counterpart (quantised dtypes, for instance).
Dtype to_dtype(at::ScalarType type);
at::ScalarType to_scalar_type(Dtype dtype);
std::string to_layout_name(at::Layout layout);
at::Layout to_layout(std::string_view name);
std::string to_memory_format_name(at::MemoryFormat format);
at::MemoryFormat to_memory_format(std::string_view name);

/// An operator argument that holds no tensor, its numbers taken as they are (no batch known yet).
///
/// type   of the argument in the operator's schema: tells a dtype or layout from a plain int.
graph::Argument to_constant(const c10::IValue& value, const c10::Type& type);

/// Data of `tensor`, dense in C order. Copies.
std::vector<std::byte> to_bytes(const at::Tensor& tensor);

/// Inverse of `to_bytes`.
at::Tensor to_tensor(std::span<const std::byte> bytes, Dtype dtype, at::IntArrayRef shape);

/// A plain number of any kind, as an IValue's Scalar holds it.
c10::Scalar to_scalar(const graph::WrappedNumber& number, std::int64_t batch);

/// kResourceExhausted where memory ran out, kUnavailable where this build of torch lacks a device,
/// kModelFailure else.
ErrorKind kind_of(const c10::Error& error);

/// What to do where a failure is of that kind, begun by "; "; may be empty.
std::string advice(ErrorKind kind);

/// What torch says, in one line without a full stop.
std::string text_of(const c10::Error& error);

}  // namespace trireme::record
