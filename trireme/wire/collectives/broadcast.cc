// The root sends chunk i to rank i, and every rank sends its chunk to all others but the root. So
// the root sends its buffer about twice, not once per rank, and the others share the rest.

#include "trireme/wire/collectives/hops.h"

namespace trireme::collectives {

void broadcast(Call& call, std::span<std::byte> data, int root) {
  const int own = call.members().group_rank;
  const auto part = [&](int index) { return internal::part_of(call, data, index); };
  if (own != root) {
    call.recv(root, Hop::kFirst, part(own));
    for (const int peer : call.peers()) call.recv(peer, Hop::kSecond, part(peer));
  }
  call.agree();
  if (own == root) {
    for (const int peer : call.peers()) call.send(peer, Hop::kFirst, part(peer));
  } else {
    call.wait_recvs(root, Hop::kFirst);
  }
  for (const int peer : call.peers()) {
    if (peer != root) call.send(peer, Hop::kSecond, part(own));
  }
  call.wait_all();
}

void barrier(Call& call) { call.agree(); }

}  // namespace trireme::collectives
