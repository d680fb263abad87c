#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <cstddef>
#include <span>

#include "trireme/engine/program/stage_autograd.h"
#include "trireme/model.h"

namespace trireme::shard {

// How functions over shards take part in autograd.

/// Where the gradients of tensors go; none where a tensor needs none.
torch::autograd::edge_list edges_of(const TensorList& tensors);

/// Lets the backward of `tensor`, which has none yet, begin at `node`.
void join(at::Tensor& tensor, const program::NodePtr& node);

/// The memory of a dense tensor.
std::span<std::byte> bytes_of(const at::Tensor& tensor);

/// Whether gradients are recorded, and one of the inputs needs one.
bool records_gradient(const TensorList& inputs);

}  // namespace trireme::shard
