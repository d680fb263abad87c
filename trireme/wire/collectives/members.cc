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

void check_same(const Members& members, const std::vector<Description>& descriptions) {
  for (int i = 1; i < members.size(); ++i) {
    if (descriptions[i] == descriptions[0]) continue;
    throw Error(
        ErrorKind::kInvalidArgument,
        "group " + members.name + ": " +
            difference_text(members.ranks[0], descriptions[0], members.ranks[i], descriptions[i]));
  }
}

}  // namespace trireme::collectives
