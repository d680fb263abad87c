#pragma once

#include <cstdint>

#include "trireme/plan/analytic/achieved.h"
#include "trireme/plan/analytic/machine.h"

namespace trireme::analytic {

/// Ranks that run collectives together: `stride` apart in the order of devices, as many groups of the
/// same kind beside it on each host as there are devices between two of its ranks.
struct CollectiveGroup {
  std::int64_t num_ranks = 1;
  std::int64_t stride = 1;
};

/// What a collective or a message takes. A ring that goes over hosts is as wide as the cards of its ranks of
/// one host together: eight ranks of a host use all its cards, one rank its own part of them.
class GroupTimes {
 public:
  GroupTimes(const Machine& machine, const AchievedParts& achieved)
      : machine_(machine), achieved_(achieved) {}

  /// Seconds. bytes: of the whole buffer.
  double all_reduce_s(const CollectiveGroup& group, double bytes) const;
  /// Of one all_gather or reduce_scatter; bytes of the whole.
  double gather_s(const CollectiveGroup& group, double bytes) const;
  /// From a rank to the one that is `stride` further.
  double message_s(std::int64_t stride, double bytes) const;

 private:
  std::int64_t ranks_per_host(const CollectiveGroup& group) const;
  double bytes_per_s(const CollectiveGroup& group) const;

  Machine machine_;
  AchievedParts achieved_;
};

}  // namespace trireme::analytic
