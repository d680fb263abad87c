#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

#include "trireme/plan/schedule/message_limits.h"

namespace trireme::pipeline {

/// A boundary value or gradient as bytes: a header of kMessageHeaderBytes that says dtype, sizes
/// and strides, then the memory that the tensor spans. An undefined tensor is a message too: its
/// gradient is absent, which is not zero.
///
/// Both are u8 tensors of one dimension, their memory aligned to 64 bytes.
inline constexpr std::size_t kMessageHeaderBytes = schedule::kMessageHeaderBytes;

/// Memory for a message of that many bytes.
at::Tensor make_message(std::size_t bytes);

/// Copies `tensor` into a message, as program::copy_across does between stages of one process.
///
/// tensor   on the CPU, at most 16 dimensions, else kInvalidArgument.
at::Tensor pack(const at::Tensor& tensor);

/// The tensor in a message; it shares the message's memory.
///
/// Errors   kCorruptData where the bytes are no message.
at::Tensor unpack(const at::Tensor& message);

}  // namespace trireme::pipeline
