#include "python/backend/monitored_barrier.h"

#include <algorithm>
#include <string>
#include <vector>

#include "trireme/error.h"

namespace trireme::backend {
namespace {

using std::chrono::milliseconds;

std::string key_of(const MonitoredBarrier& barrier, const std::string& word) {
  return "trireme/monitored_barrier/" + std::to_string(barrier.number) + "/" + word;
}

/// Ranks that have not come until the end; the first of them alone where that is enough.
std::vector<int> wait_for_others(Rendezvous& rendezvous, const MonitoredBarrier& barrier) {
  const auto end = std::chrono::steady_clock::now() + barrier.timeout;
  std::vector<int> missing;
  for (int rank = 1; rank < barrier.size; ++rank) {
    const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
    try {
      rendezvous.get(key_of(barrier, "here/" + std::to_string(rank)),
                     std::max(left, milliseconds(1)));
    } catch (const Error&) {
      missing.push_back(rank);
      if (!barrier.waits_for_all) break;
    }
  }
  return missing;
}

/// In the words by which torch's users look for it.
std::string verdict_of(const std::vector<int>& missing, const MonitoredBarrier& barrier) {
  if (missing.empty()) return "";
  std::string ranks;
  for (const int rank : missing) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  return "[Rank 0]: " + std::string(barrier.waits_for_all ? "Ranks " : "Rank ") + ranks +
         " failed to pass monitoredBarrier in " + std::to_string(barrier.timeout.count()) + " ms";
}

}  // namespace

void monitored_barrier(Rendezvous& rendezvous, const MonitoredBarrier& barrier) {
  std::string verdict;
  if (barrier.rank == 0) {
    verdict = verdict_of(wait_for_others(rendezvous, barrier), barrier);
    rendezvous.set(key_of(barrier, "verdict"), "=" + verdict);
  } else {
    rendezvous.set(key_of(barrier, "here/" + std::to_string(barrier.rank)), "1");
    verdict = rendezvous.get(key_of(barrier, "verdict"), barrier.timeout).substr(1);
  }
  if (!verdict.empty()) throw Error(ErrorKind::kTimeout, verdict);
}

}  // namespace trireme::backend
