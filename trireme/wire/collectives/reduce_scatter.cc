// Chunk i of every rank goes to rank i, which combines them by THE tree over group ranks. A chunk
// is combined as soon as both sides of a merge are there.
//
// Three ranks, rank 1's chunk: slots 0 and 2 are scratch, slot 1 is the chunk in `data`.
//     tree_merges(3) = 0+1, 0+2: wait for 0, slot 0 += slot 1; wait for 2, slot 0 += slot 2;
//     the sum is in slot 0, from where it is copied to the chunk.

#include <algorithm>
#include <vector>

#include "trireme/kernels/reduce/fold.h"
#include "trireme/kernels/reduce/tree.h"
#include "trireme/wire/collectives/hops.h"

namespace trireme::collectives {
namespace {

/// A slot per rank: the scratch for the others' chunks, and `own` itself.
template <typename T>
std::vector<std::span<T>> slots_of(Call& call, std::span<T> own) {
  const auto bytes = call.scratch().at_least(call.peers().size() * own.size_bytes());
  T* next = reinterpret_cast<T*>(bytes.data());
  std::vector<std::span<T>> slots(call.members().size(), own);
  for (const int peer : call.peers()) {
    slots[peer] = {next, own.size()};
    next += own.size();
  }
  return slots;
}

}  // namespace

template <typename T>
void internal::sum_own_chunk(Call& call, std::span<T> data) {
  const int own = call.members().group_rank;
  const std::span<T> chunk = part_of(call, data, own);
  const std::vector<std::span<T>> slots = slots_of(call, chunk);
  for (const int peer : call.peers()) {
    call.recv(peer, Hop::kFirst, std::as_writable_bytes(slots[peer]));
  }
  call.agree();
  for (const int peer : call.peers()) {
    call.send(peer, Hop::kFirst, std::as_bytes(part_of(call, data, peer)));
  }
  for (const kernels::Merge merge : kernels::tree_merges(call.members().size())) {
    call.wait_recvs(merge.left, Hop::kFirst);
    call.wait_recvs(merge.right, Hop::kFirst);
    kernels::add_into(slots[merge.left].data(), slots[merge.right].data(),
                      static_cast<std::int64_t>(chunk.size()));
  }
  if (own != 0) std::copy(slots[0].begin(), slots[0].end(), chunk.begin());
  call.wait_all();
}

template <typename T>
void reduce_scatter(Call& call, std::span<T> data) {
  internal::sum_own_chunk(call, data);
}

template void internal::sum_own_chunk(Call&, std::span<float>);
template void internal::sum_own_chunk(Call&, std::span<double>);
template void reduce_scatter(Call&, std::span<float>);
template void reduce_scatter(Call&, std::span<double>);

}  // namespace trireme::collectives
