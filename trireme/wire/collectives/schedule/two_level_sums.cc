// Hosts of g ranks. Inside a host rank j combines, for the ranks j of all hosts, what these own; it
// sends each of them that partial result, and they combine the hosts'. Two hosts of two ranks,
// data `abcd`, a letter per owner, 0 1 2 3 being what the ranks have:
//
//     inside the hosts      rank 0 has a(01) c(01)   1: b(01) d(01)   2: a(23) c(23)   3: b(23) d(23)
//     between them          rank 0 gives c to 2, gets a: a(0123)      1: b             2: c   3: d
//     all_reduce            rank 0 gives a to 2 and 1, gets c from 2, which 1 needs, too; ...
//
// With g a power of two, the ranks of a host are a subtree of THE tree, and hosts are combined by
// what is above. Partial results lose nothing: they are as wide as what elements are combined in.
// Scales are those of a host's own ranks; what an average is divided by comes in at the end.

#include "trireme/wire/collectives/schedule/two_level_steps.h"

namespace trireme::collectives::internal {
namespace {

/// Rank j of the i-th of `owners` owns piece i of chunk j.
std::vector<Chunk> pieces(const CollectiveSetting& setting, const std::vector<int>& owners) {
  std::vector<Chunk> result(setting.num_ranks);
  const HostPlace place(setting);
  for (int local = 0; local < place.ranks_per_host; ++local) {
    const Chunk chunk = chunk_of(setting.count, place.ranks_per_host, local);
    for (int i = 0; i < static_cast<int>(owners.size()); ++i) {
      const Chunk part = chunk_of(chunk.size(), static_cast<int>(owners.size()), i);
      result[place.rank_at(owners[i], local)] = {chunk.begin + part.begin, chunk.begin + part.end};
    }
  }
  return result;
}

std::vector<int> all_hosts(const CollectiveSetting& setting) {
  std::vector<int> result;
  for (int host = 0; host < HostPlace(setting).num_hosts; ++host) result.push_back(host);
  return result;
}

Range same(const Range& segment) { return segment; }

}  // namespace

CollectiveSchedule two_level_all_reduce(const CollectiveSetting& setting) {
  TwoLevelSteps steps(setting, pieces(setting, all_hosts(setting)));
  steps.combine_own(same, [&](const Range& result) { steps.give(result); });
  steps.collect();
  return steps.builder().take();
}

CollectiveSchedule two_level_reduce_scatter(const CollectiveSetting& setting) {
  TwoLevelSteps steps(setting, setting.parts);
  steps.combine_own(same, [](const Range&) {});
  return steps.builder().take();
}

/// Of two hosts that of the root combines. Of more the others do, and give it the results: then the
/// data goes into the root's host once, where else it would from each.
CollectiveSchedule two_level_reduce(const CollectiveSetting& setting) {
  std::vector<int> owners = all_hosts(setting);
  const int root_host = setting.root / setting.ranks_per_host;
  if (owners.size() == 2) {
    owners = {root_host};
  } else {
    std::erase(owners, root_host);
  }
  const std::vector<Chunk> parts = pieces(setting, owners);
  TwoLevelSteps steps(setting, parts);
  ScheduleBuilder& builder = steps.builder();
  if (setting.rank != setting.root) {
    // The data of the others is left.
    steps.combine_own([&](const Range& segment) { return builder.scratch(segment.size()); },
                      [&](const Range& result) { builder.send(setting.root, result); });
    return builder.take();
  }
  steps.combine_own(same, [](const Range&) {});
  for (const int peer : peers_of(setting)) {
    for (const Range& segment : steps.segments(data_range(parts[peer]))) {
      builder.recv(peer, segment);
    }
  }
  return builder.take();
}

}  // namespace trireme::collectives::internal
