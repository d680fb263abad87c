#include "trireme/wire/collectives/members.h"

#include "trireme/wire/transport/watch.h"

namespace trireme::collectives {

std::uint64_t mixed(std::uint64_t hash, std::int64_t value) {
  hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

std::uint64_t message_id(std::uint64_t id, const std::vector<int>& ranks, std::uint64_t use) {
  std::uint64_t hash =
      mixed(mixed(1, static_cast<std::int64_t>(id)), static_cast<std::int64_t>(use));
  for (const int rank : ranks) hash = mixed(hash, rank);
  return hash >> 4;
}

Error late_error(const std::vector<int>& ranks, std::chrono::milliseconds deadline) {
  Error error(ErrorKind::kTimeout, "waited " + std::to_string(deadline.count()) + " ms for " +
                                       transport::ranks_text(ranks) +
                                       "; have they failed, or do they call something else?");
  if (!ranks.empty()) error.add({.peer = ranks.front()});
  return error;
}

void check_same(const Members& members, const std::map<int, Description>& descriptions) {
  const auto& [first, expected] = *descriptions.begin();
  for (const auto& [rank, description] : descriptions) {
    if (description == expected) continue;
    throw Error(ErrorKind::kInvalidArgument, "group " + members.name + ": " +
                                                 difference_text(members.ranks[first], expected,
                                                                 members.ranks[rank], description));
  }
}

}  // namespace trireme::collectives
