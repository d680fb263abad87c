// Hosts of g ranks, N of them. A rank hands to each rank j of its host, in one message, what it
// has for the ranks j of all hosts; so that these, its rail, need one message from host to host for
// what g ranks have for one another:
//
//     inside the hosts      (h, i) gives (h, j) its parts for (0, j), (1, j), ...
//     between them          (h, j) gives (k, j) what (h, 0), (h, 1), ... have for (k, j)
//
// g - 1 messages and N - 1, in place of N g - 1; N - 1 leave the host in place of (N - 1) g.

#include <vector>

#include "trireme/wire/collectives/schedule/builder.h"
#include "trireme/wire/collectives/schedule/generators.h"

namespace trireme::collectives {
namespace {

class TwoLevelAllToAll {
 public:
  TwoLevelAllToAll(const Setting& setting, int ranks_per_host)
      : part_(setting.count),
        ranks_per_host_(ranks_per_host),
        num_hosts_(setting.num_ranks / ranks_per_host),
        host_(setting.rank / ranks_per_host),
        local_(setting.rank % ranks_per_host),
        bundles_(num_hosts_) {}

  Schedule make() {
    builder_.copy(part(Place::kData, host_, local_), part(Place::kInput, host_, local_));
    give_inside();
    for (const int host : others(host_, num_hosts_)) {
      bundles_[host] = builder_.scratch(ranks_per_host_ * part_);
      builder_.copy(bundled(host, local_), part(Place::kInput, host, local_));
    }
    for (const int local : others(local_, ranks_per_host_)) take_inside(local);
    for (const int host : others(host_, num_hosts_)) {
      builder_.send(rank_at(host, local_), bundles_[host]);
    }
    for (const int host : others(host_, num_hosts_)) {
      // Parts of a host's ranks follow each other.
      const Range first = part(Place::kData, host, 0);
      builder_.recv(rank_at(host, local_),
                    {Place::kData, first.begin, first.begin + ranks_per_host_ * part_});
    }
    return builder_.take();
  }

 private:
  int rank_at(int host, int local) const { return host * ranks_per_host_ + local; }

  Range part(Place place, int host, int local) const {
    const std::int64_t begin = rank_at(host, local) * part_;
    return {place, begin, begin + part_};
  }

  /// Part `index` of a block of parts.
  Range part_in(const Range& block, int index) const {
    return part_of(block, index * part_, (index + 1) * part_);
  }

  /// Where what rank `local` of this host has for `host` waits to leave.
  Range bundled(int host, int local) const { return part_in(bundles_[host], local); }

  /// All but `own` of `count`, from the one behind it on.
  static std::vector<int> others(int own, int count) {
    std::vector<int> result;
    for (int i = 1; i < count; ++i) result.push_back((own + i) % count);
    return result;
  }

  void give_inside() {
    for (const int local : others(local_, ranks_per_host_)) {
      const Range block = builder_.scratch(num_hosts_ * part_);
      for (int host = 0; host < num_hosts_; ++host) {
        builder_.copy(part_in(block, host), part(Place::kInput, host, local));
      }
      builder_.send(rank_at(host_, local), block);
    }
  }

  void take_inside(int local) {
    const Range block = builder_.scratch(num_hosts_ * part_);
    builder_.recv(rank_at(host_, local), block);
    builder_.copy(part(Place::kData, host_, local), part_in(block, host_));
    for (const int host : others(host_, num_hosts_)) {
      builder_.copy(bundled(host, local), part_in(block, host));
    }
  }

  const std::int64_t part_;  ///< Elements.
  const int ranks_per_host_;
  const int num_hosts_;
  const int host_;
  const int local_;             ///< Rank on the host.
  std::vector<Range> bundles_;  ///< By host: what leaves for it.
  ScheduleBuilder builder_;
};

}  // namespace

Schedule two_level_all_to_all(const Setting& setting, int ranks_per_host) {
  return TwoLevelAllToAll(setting, ranks_per_host).make();
}

}  // namespace trireme::collectives
