#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "python/backend/buffers.h"
#include "python/backend/rank_group.h"
#include "trireme/wire/collectives/request.h"

namespace trireme::backend {

/// Of a call; nothing: the group's.
using Timeout = std::optional<std::chrono::milliseconds>;

using Tensors = std::vector<at::Tensor>;

/// What a call on tensors has started. They are lent until its works have ended and `after` has run.
struct Call {
  std::vector<transport::WorkPtr> works;
  After after;
  Tensors results;              ///< The tensors in which the results are.
  Tensors lent;                 ///< What else the works read and write.
  transport::RecvWorkPtr recv;  ///< One of the works, where the call is a recv.
};

/// Several as one.
Call together(std::vector<Call> calls);

// The collectives on tensors of any shape, layout in memory, and dtype; of no elements too. They
// return at once.
//
// Errors   kInvalidArgument where tensors do not fit together or cannot be combined; those of
//          RankGroup::start. Works fail as Group's do.

/// Each tensor = the reduction over ranks of it.
Call all_reduce(RankGroup& group, Timeout timeout, const Tensors& tensors, collectives::Reduce by);

/// The same for sparse COO tensors, by sum: each rank's indices and values go to all. Blocks.
Call all_reduce_sparse(RankGroup& group, Timeout timeout, const at::Tensor& tensor,
                       collectives::Reduce by);

/// The same for the root alone; the others' tensors stay.
Call reduce(RankGroup& group, Timeout timeout, const at::Tensor& tensor, int root,
            collectives::Reduce by);

Call broadcast(RankGroup& group, Timeout timeout, const at::Tensor& tensor, int root);

/// outputs[i] = rank i's input: of any number of elements, which all ranks know.
Call all_gather(RankGroup& group, Timeout timeout, const Tensors& outputs, const at::Tensor& input);

/// output = the inputs, one behind the other.
Call all_gather_single(RankGroup& group, Timeout timeout, const at::Tensor& output,
                       const at::Tensor& input);

/// outputs: of the root only, as above. inputs: of the root only.
Call gather(RankGroup& group, Timeout timeout, const Tensors& outputs, const at::Tensor& input,
            int root);
Call scatter(RankGroup& group, Timeout timeout, const at::Tensor& output, const Tensors& inputs,
             int root);

/// output = the reduction of the ranks' inputs[own rank]. Inputs of any number of elements, and stay.
Call reduce_scatter(RankGroup& group, Timeout timeout, const at::Tensor& output,
                    const Tensors& inputs, collectives::Reduce by);

/// The same, with inputs one behind the other, of one size.
Call reduce_scatter_single(RankGroup& group, Timeout timeout, const at::Tensor& output,
                           const at::Tensor& input, collectives::Reduce by);

/// inputs[i] goes to rank i, outputs[i] comes from it.
Call all_to_all(RankGroup& group, Timeout timeout, const Tensors& outputs, const Tensors& inputs);

/// The same with rows of one tensor. Splits in rows, by rank; none: equal parts.
Call all_to_all_single(RankGroup& group, Timeout timeout, const at::Tensor& output,
                       const at::Tensor& input, std::span<const std::int64_t> output_splits,
                       std::span<const std::int64_t> input_splits);

Call barrier(RankGroup& group, Timeout timeout);

Call send(RankGroup& group, const at::Tensor& tensor, int peer, int tag);

/// source   a group rank, or transport::kAnySource.
Call recv(RankGroup& group, const at::Tensor& tensor, int source, int tag);

}  // namespace trireme::backend
