// Every rank sends its part to all others, straight into its place there.

#include <algorithm>

#include "trireme/wire/collectives/hops.h"

namespace trireme::collectives {

void all_gather(Call& call, std::span<const std::byte> mine, std::span<std::byte> all) {
  const auto part = [&](int index) {
    return all.subspan(static_cast<std::size_t>(index) * mine.size(), mine.size());
  };
  for (const int peer : call.peers()) call.recv(peer, Hop::kFirst, part(peer));
  call.agree();
  for (const int peer : call.peers()) call.send(peer, Hop::kFirst, mine);
  const std::span<std::byte> own = part(call.members().group_rank);
  if (own.data() != mine.data()) std::copy(mine.begin(), mine.end(), own.begin());
  call.wait_all();
}

template <typename T>
void internal::spread_chunks(Call& call, std::span<T> data) {
  const std::span<T> own = part_of(call, data, call.members().group_rank);
  for (const int peer : call.peers()) {
    call.recv(peer, Hop::kSecond, std::as_writable_bytes(part_of(call, data, peer)));
  }
  for (const int peer : call.peers()) call.send(peer, Hop::kSecond, std::as_bytes(own));
  call.wait_all();
}

template void internal::spread_chunks(Call&, std::span<float>);
template void internal::spread_chunks(Call&, std::span<double>);

}  // namespace trireme::collectives
