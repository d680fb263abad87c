// Two hops: every rank sums its chunk, then sends the sum to all others. No rank waits for a chain
// of others, and each element is summed once, so all ranks have the same bits.

#include "trireme/wire/collectives/hops.h"

namespace trireme::collectives {

template <typename T>
void all_reduce(Call& call, std::span<T> data) {
  internal::sum_own_chunk(call, data);
  internal::spread_chunks(call, data);
}

template void all_reduce(Call&, std::span<float>);
template void all_reduce(Call&, std::span<double>);

}  // namespace trireme::collectives
