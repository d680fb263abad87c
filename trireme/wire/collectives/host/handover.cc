#include "trireme/wire/collectives/host/handover.h"

#include <thread>

#include "trireme/base/error.h"

namespace trireme::collectives {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Runs what talks to a local peer. One that has ended may have done so because of another's end,
/// of which the group is told: that is then the cause.
template <typename Talk>
auto with_first_cause(const Members& members, Talk talk) {
  try {
    return talk();
  } catch (const Error& lost) {
    if (lost.kind() != ErrorKind::kPeerLost) throw;
    for (const auto limit = Clock::now() + std::chrono::seconds(1); Clock::now() < limit;) {
      if (const auto error = members.failure()->error()) throw Error(*error);
      std::this_thread::sleep_for(milliseconds(1));
    }
    throw;
  }
}

}  // namespace

void give(const Members& members, Use use, const transport::SharedMemory& memory) {
  for (int i = 1; i < members.size(); ++i) {
    with_first_cause(members, [&] {
      members.endpoint.local_peers().give(members.ranks[i], members.tag(use), memory);
    });
  }
}

std::optional<transport::SharedMemory> take(const Members& members, Use use, milliseconds time) {
  return with_first_cause(members, [&] {
    return members.endpoint.local_peers().take(members.ranks[0], members.tag(use), time);
  });
}

}  // namespace trireme::collectives
