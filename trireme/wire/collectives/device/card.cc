#include "trireme/wire/collectives/device/card.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace trireme::collectives {

static_assert(std::is_trivially_copyable_v<Card>);

std::uint64_t process_id() {
  // Containers count their processes from 1 each.
  struct stat space{};
  const bool is_known = ::stat("/proc/self/ns/pid", &space) == 0;
  return mixed(mixed(1, ::getpid()), is_known ? static_cast<std::int64_t>(space.st_ino) : 0);
}

std::vector<Card> exchange_cards(const Members& members, HostExchange& exchange, const Card& own) {
  std::vector<Card> cards(members.ranks.size());
  cards[members.group_rank] = own;
  exchange.all_gather(std::as_writable_bytes(std::span(cards)));
  return cards;
}

bool all_agree(const Members& members, HostExchange& exchange, bool own) {
  std::vector<std::byte> votes(members.ranks.size());
  votes[members.group_rank] = static_cast<std::byte>(own);
  exchange.all_gather(votes);
  return std::ranges::all_of(votes, [](std::byte vote) { return vote != std::byte{0}; });
}

std::optional<Sharing> find_sharing(const std::vector<Card>& cards) {
  for (std::size_t i = 0; i < cards.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (cards[i].device == cards[j].device) {
        return Sharing{static_cast<int>(j), static_cast<int>(i)};
      }
    }
  }
  return std::nullopt;
}

}  // namespace trireme::collectives
