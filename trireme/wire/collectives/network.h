#pragma once

#include <cstddef>
#include <span>

#include "trireme/kernels/reduce/combine.h"
#include "trireme/wire/collectives/algorithm.h"
#include "trireme/wire/collectives/call.h"
#include "trireme/wire/collectives/chunk.h"

/// The operations of a group over its endpoint. Each runs from start to end on the group's thread
/// and leaves nothing under way, unless it throws: then `Call::drain`.
///
/// The call's description says the same as the arguments, on all ranks: operation, dtype, count,
/// reduction, root; and the order. Where a function has no argument for it, it is also where the
/// algorithm comes from. An operation of no elements at all, other than one whose parts are of any
/// size, waits for all ranks, as a barrier does.
///
/// Errors   kInvalidArgument, before anything is sent, where the algorithm is not eligible or the
///          arguments contradict the description or each other; those of `Call::wait`.
/// Cost     docs/algorithms.md.
namespace trireme::collectives {

/// data = the reduction over ranks of data, in place.
void network_all_reduce(Call& call, Elements data, kernels::ReduceOp op, Algorithm algorithm);

/// As network_all_reduce on the root; the data of the others is left.
void network_reduce(Call& call, Elements data, kernels::ReduceOp op, int root);

/// This rank's part of `data` becomes the reduction; the rest is left.
///
/// parts   one per group rank, the same on all: elements of data, no overlap, some may be empty.
void network_reduce_scatter(Call& call, Elements data, kernels::ReduceOp op,
                            std::span<const Chunk> parts);

/// Every rank's part of `all` goes to all others.
///
/// parts   as above, in bytes. The own part is there already.
void network_all_gather(Call& call, std::span<std::byte> all, std::span<const Chunk> parts);

/// data = the root's data.
void network_broadcast(Call& call, std::span<std::byte> data, int root);

/// Part i goes to group rank i, and what it has for this rank to recv_parts[i]. Empty parts are
/// left out on both sides: a gather gives only to the root, a scatter takes only from it.
/// kInvalidArgument on both ranks where a part is not as large as its receiver expects.
void network_all_to_all(Call& call, std::span<const std::span<const std::byte>> send_parts,
                        std::span<const std::span<std::byte>> recv_parts);

/// Returns once all ranks have called it.
void network_barrier(Call& call);

}  // namespace trireme::collectives
