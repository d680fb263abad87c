#include "trireme/wire/collectives/host/lent_memory.h"

#include <unistd.h>

namespace trireme::collectives {

LentMemory::LentMemory(const Members& members) : own_(members.group_rank) {
  for (const int rank : members.ranks) {
    const bool is_own = rank == members.endpoint.rank();
    const auto process = is_own ? ::getpid() : members.endpoint.local_peers().process_of(rank);
    const auto memory = process ? transport::ProcessMemory::open(*process) : std::nullopt;
    if (!memory) {
      give_up();
      return;
    }
    processes_.push_back(*memory);
  }
}

bool LentMemory::read(std::span<const Exchange::Move> moves,
                      std::span<const std::uint64_t> addresses) const {
  for (const Exchange::Move& move : moves) {
    if (move.from == own_) continue;
    if (processes_[move.from].read(addresses[move.from] + move.offset, move.to) != 0) return false;
  }
  return true;
}

}  // namespace trireme::collectives
