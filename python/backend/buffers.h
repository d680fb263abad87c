#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "trireme/dtype.h"
#include "trireme/wire/collectives/request.h"

namespace trireme::backend {

/// What runs once the works of a call have ended well; may be none.
using After = std::function<void()>;

/// Throws kInvalidArgument, naming the operation, where its memory cannot be sent: not on the CPU,
/// sparse, quantised.
void check_sendable(const at::Tensor& tensor, const char* operation);

/// The bytes of a tensor that is as `is_plain` says.
std::span<std::byte> bytes_of(const at::Tensor& tensor);

/// Whether its elements lie one behind the other, as they are.
bool is_plain(const at::Tensor& tensor);

/// The tensor, or a plain copy.
at::Tensor plain(const at::Tensor& tensor);

/// The tensor, or plain memory of its shape; what is in it is nothing yet.
at::Tensor plain_like(const at::Tensor& tensor);

/// The dtype by which messages of a tensor are compared: its own, or that of bytes.
Dtype label_of(const at::Tensor& tensor);

/// The tensor's elements in the form in which the wire combines them, and how.
struct Reducible {
  at::Tensor memory;  ///< Plain; combined in place. May be the tensor itself.
  Dtype dtype = Dtype::kF32;
  collectives::Reduce by;
  bool is_copy = false;  ///< `memory` is the tensor's no more.

  /// Result in `memory` (or a part of it), as the tensor's dtype has it, to `target` of as many
  /// elements.
  std::function<void(at::Tensor result, const at::Tensor& target)> finish;
};

/// Every dtype of torch, by every operation that has a meaning for it:
///
///     f64 f32 f16 bf16, bool, i64 i32 i16 i8 u8    as they are
///     complex    their parts, which are summed, averaged or scaled apart
///     u16 u32 u64    the signed ones of their bits; min and max with the highest bit turned
///     f8 of all kinds    in f32, rounded once
///     an average of whole numbers    their sum, divided, rounded down
///
/// group_size   ranks that give elements.
/// Errors       kInvalidArgument, naming dtype and operation, where there is no such reduction.
Reducible make_reducible(const at::Tensor& tensor, collectives::Reduce by, int group_size);

}  // namespace trireme::backend
