#pragma once

#include "packs/ranking/metrics/roc_auc.h"
#include "trireme/wire/collectives/group.h"

namespace trireme::ranking {

/// Sums over the ranks of a group of the collectives, so that `roc_auc` can be asked of all scores
/// that they hold:
///
///     GroupCounts counts(group);
///     const double auc = roc_auc(scores, labels, counts);
///
/// Buffers of the group are in memory of the host. Each sum blocks until it is done, and throws what
/// the group's operations throw: kTimeout, kPeerLost, kInvalidArgument where ranks call differently.
/// Threads: those of the group.
class GroupCounts final : public CountGroup {
 public:
  /// group   outlives this.
  explicit GroupCounts(collectives::Group& group) : group_(group) {}

  void sum(std::span<std::uint64_t> counts) override;

 private:
  collectives::Group& group_;
};

}  // namespace trireme::ranking
