#include "trireme/wire/collectives/members.h"

#include "trireme/wire/transport/watch.h"

namespace trireme::collectives {

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
