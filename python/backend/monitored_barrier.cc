#include "python/backend/monitored_barrier.h"

#include <algorithm>
#include <string>

#include "trireme/error.h"

namespace trireme::backend {
namespace {

using std::chrono::milliseconds;

std::string key_of(const MonitoredBarrier& barrier, const std::string& word) {
  return "trireme/monitored_barrier/" + std::to_string(barrier.number) + "/" + word;
}

/// Whether a rank says that it has come until then.
bool has_come(Rendezvous& rendezvous, const std::string& key, milliseconds left) {
  try {
    rendezvous.get(key, std::max(left, milliseconds(1)));
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Of rank 0: why the barrier is not passed, in the words for which torch's users look; empty where
/// all have come.
std::string verdict_of(Rendezvous& rendezvous, const MonitoredBarrier& barrier) {
  if (barrier.timeout <= milliseconds(0)) {
    return "[Rank 0]: Rank 0 timed out in monitoredBarrier after 0 ms";
  }
  const auto end = std::chrono::steady_clock::now() + barrier.timeout;
  std::string missing;
  for (int rank = 1; rank < barrier.size; ++rank) {
    const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
    if (has_come(rendezvous, key_of(barrier, "here/" + std::to_string(rank)), left)) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    if (!barrier.waits_for_all) break;
  }
  if (missing.empty()) return "";
  return "[Rank 0]: " + std::string(barrier.waits_for_all ? "Ranks " : "Rank ") + missing +
         " failed to pass monitoredBarrier in " + std::to_string(barrier.timeout.count()) + " ms";
}

/// Of the others: as above.
std::string hear_verdict(Rendezvous& rendezvous, const MonitoredBarrier& barrier) {
  constexpr milliseconds kOnItsWay{2'000};  // rank 0 decides at the end of the timeout
  const std::string own = std::to_string(barrier.rank);
  std::string verdict;
  try {
    rendezvous.set(key_of(barrier, "here/" + own), "1");
    verdict = rendezvous.get(key_of(barrier, "verdict"), barrier.timeout + kOnItsWay).substr(1);
  } catch (const Error& error) {
    verdict = error.what();
  }
  if (verdict.empty()) return "";
  return "[Rank " + own + "]: Rank " + own +
         " successfully reached monitoredBarrier, but received errors while waiting for send/recv "
         "from rank 0: " +
         verdict;
}

}  // namespace

void monitored_barrier(Rendezvous& rendezvous, const MonitoredBarrier& barrier) {
  std::string verdict;
  if (barrier.rank == 0) {
    verdict = verdict_of(rendezvous, barrier);
    rendezvous.set(key_of(barrier, "verdict"), "=" + verdict);
  } else {
    verdict = hear_verdict(rendezvous, barrier);
  }
  if (!verdict.empty()) throw Error(ErrorKind::kTimeout, verdict);
}

}  // namespace trireme::backend
