#include "trireme/plan/simulate/alike_replicas.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <numeric>

#include "trireme/plan/simulate/crowded_cores.h"
#include "trireme/plan/simulate/rank_elements.h"

// Replicas whose ranks share too few cores depend on each other: they are a team, and teams are compared as a whole.
// Four replicas of two ranks on two hosts of two cores, each host with two replicas:
//
//     host a: ranks of replicas 0 and 1    one team
//     host b: ranks of replicas 2 and 3    one more, alike: 2 does what 0 does, 3 what 1 does
//
// What makes a team is written as a row of numbers; teams are alike where these are the same.

namespace trireme::simulate {
namespace {

using Description = std::vector<std::int64_t>;

/// Where a rank is in the mesh.
struct MeshPlace {
  int position = -1;  ///< -1 where it does not train.
  int replica = -1;
};

std::vector<MeshPlace> mesh_places(const layout::Role& role, std::size_t num_ranks) {
  std::vector<MeshPlace> places(num_ranks);
  for (int p = 0; p < role.mesh.pipeline; ++p) {
    for (int r = 0; r < role.mesh.data; ++r) {
      places[role.placement[p * role.mesh.data + r]] = {p, r};
    }
  }
  return places;
}

int count_world_ranks(const layout::Plan& plan) {
  int last = -1;
  for (const layout::Role& role : plan.roles) {
    for (const int rank : role.placement) last = std::max(last, rank);
  }
  return last + 1;
}

class Teams {
 public:
  Teams(const layout::Plan& plan, const layout::ParameterMap& map,
        const topology::Topology& topology)
      : role_(layout::train_role(plan)),
        topology_(topology),
        elements_(rank_elements(plan, map)),
        places_(mesh_places(role_, count_world_ranks(plan))),
        crowded_(crowded_cores(topology, count_world_ranks(plan))),
        captain_(role_.mesh.data) {
    std::iota(captain_.begin(), captain_.end(), 0);
    for (const topology::SharedCores& shared : crowded_) join(shared.ranks);
    for (int r = 0; r < role_.mesh.data; ++r) members_[captain(r)].push_back(r);
    for (const topology::SharedCores& shared : crowded_) {
      for (const int rank : shared.ranks) {
        if (places_[rank].replica < 0) continue;
        crowded_of_[captain(places_[rank].replica)].push_back(&shared);
        break;
      }
    }
  }

  std::vector<int> first_alike() {
    std::map<Description, int> first;  // Team of that description.
    std::vector<int> alike(role_.mesh.data);
    for (const auto& [captain, members] : members_) {
      const int same = first.try_emplace(describe(captain), captain).first->second;
      for (std::size_t i = 0; i < members.size(); ++i) alike[members[i]] = members_[same][i];
    }
    return alike;
  }

 private:
  /// The first of a replica's team.
  int captain(int replica) {
    while (captain_[replica] != replica) {
      replica = captain_[replica] = captain_[captain_[replica]];
    }
    return replica;
  }

  void join(const std::vector<int>& ranks) {
    int first = -1;
    for (const int rank : ranks) {
      if (places_[rank].replica < 0) continue;
      const int other = captain(places_[rank].replica);
      first = first < 0 ? other : captain(first);
      captain_[std::max(first, other)] = std::min(first, other);
    }
  }

  Description describe(int captain) {
    const std::vector<int>& members = members_[captain];
    Description text = {std::ssize(members)};
    for (const int replica : members) add_replica(replica, text);
    for (const topology::SharedCores* shared : crowded_of_[captain]) {
      text.insert(text.end(), {shared->num_cores, std::ssize(shared->ranks)});
      for (const int rank : shared->ranks) {
        const auto& [position, replica] = places_[rank];
        const auto member = std::ranges::lower_bound(members, replica) - members.begin();
        text.insert(text.end(), {position, replica < 0 ? -1 : member});
      }
    }
    return text;
  }

  /// Its hosts, by the order in which its positions come to them, and what its ranks update.
  void add_replica(int replica, Description& text) const {
    std::map<int, int> hosts;
    for (int p = 0; p < role_.mesh.pipeline; ++p) {
      const int rank = role_.placement[p * role_.mesh.data + replica];
      const int next = static_cast<int>(hosts.size());
      const RankElements& elements = elements_[replica][p];
      text.insert(text.end(), {hosts.try_emplace(topology_.ranks[rank].host, next).first->second,
                               elements.owned, elements.further_sites,
                               std::bit_cast<std::int64_t>(topology_.ranks[rank].speed)});
    }
  }

  const layout::Role& role_;
  const topology::Topology& topology_;
  std::vector<std::vector<RankElements>> elements_;  ///< By replica, by position.
  std::vector<MeshPlace> places_;                    ///< By world rank.
  std::vector<topology::SharedCores> crowded_;
  std::vector<int> captain_;                 ///< By replica: one before it of the same team.
  std::map<int, std::vector<int>> members_;  ///< By captain, ascending.
  std::map<int, std::vector<const topology::SharedCores*>> crowded_of_;  ///< By captain.
};

}  // namespace

std::vector<int> alike_replicas(const layout::Plan& plan, const layout::ParameterMap& map,
                                const topology::Topology& topology) {
  const bool is_even = layout::train_role(plan).is_even();
  if (is_even && topology.shared_links.empty()) return Teams(plan, map, topology).first_alike();
  std::vector<int> all(layout::train_role(plan).mesh.data);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<int> alike_ranks(const layout::Plan& plan, const std::vector<int>& replicas) {
  const layout::Role& role = layout::train_role(plan);
  std::vector<int> ranks(count_world_ranks(plan));
  std::iota(ranks.begin(), ranks.end(), 0);
  for (int p = 0; p < role.mesh.pipeline; ++p) {
    for (int r = 0; r < role.mesh.data; ++r) {
      const int place = p * role.mesh.data;
      ranks[role.placement[place + r]] = role.placement[place + replicas[r]];
    }
  }
  return ranks;
}

}  // namespace trireme::simulate
