#include "trireme/plan/partition/rank_orders.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace trireme::partition {
namespace {

/// Of so many all orders are tried.
constexpr int kFewRanks = 4;

using Order = std::vector<int>;

/// Collects orders of ranks, of those that come to the same the first.
class Orders {
 public:
  Orders(const Problem& problem, int num_ranks) : problem_(problem), cores_(num_ranks, -1) {
    int group = 0;
    for (const topology::SharedCores& shared : topology::shared_cores(problem.topology)) {
      for (const int rank : shared.ranks) {
        if (rank < num_ranks) cores_[rank] = group;
      }
      ++group;
    }
  }

  void add(Order order) {
    if (described_.insert(describe(order)).second) orders_.push_back(std::move(order));
  }

  std::vector<Order> orders() && { return std::move(orders_); }

 private:
  /// Speed, memory, host and cores of each place; hosts and cores by the order in which they come.
  using Description = std::vector<std::tuple<double, std::int64_t, int, int>>;

  Description describe(const Order& order) const {
    std::map<int, int> hosts, groups;
    Description description;
    for (const int rank : order) {
      const topology::RankPlace& place = problem_.topology.ranks[rank];
      const int next_host = static_cast<int>(hosts.size());
      const int next_group = static_cast<int>(groups.size());
      description.emplace_back(place.speed,
                               problem_.options.device_memory_bytes > 0 ? 0 : place.memory_bytes,
                               hosts.try_emplace(place.host, next_host).first->second,
                               groups.try_emplace(cores_[rank], next_group).first->second);
    }
    return description;
  }

  const Problem& problem_;
  std::vector<int> cores_;  ///< By rank: which of the groups that share cores.
  std::vector<Order> orders_;
  std::set<Description> described_;
};

/// Places of kSpread in which the ranks stand as kCluster has them.
Order clustered(int num_ranks, int num_replicas) {
  const int num_positions = num_ranks / num_replicas;
  Order order;
  for (int position = 0; position < num_positions; ++position) {
    for (int r = 0; r < num_replicas; ++r) order.push_back(r * num_positions + position);
  }
  return order;
}

}  // namespace

std::vector<std::vector<int>> rank_orders(const Problem& problem, int num_ranks) {
  if (problem.options.placement != Placement::kSpread) return {{}};
  const std::vector<topology::RankPlace>& ranks = problem.topology.ranks;
  Orders orders(problem, num_ranks);
  Order order(num_ranks);
  std::iota(order.begin(), order.end(), 0);
  const Order first = order;
  orders.add(first);
  if (num_ranks <= kFewRanks) {
    while (std::ranges::next_permutation(order).found) orders.add(order);
  } else {
    orders.add(clustered(num_ranks, problem.options.replicas));
    const auto add_sorted = [&](const auto& is_before) {
      order = first;
      std::ranges::stable_sort(order, [&](int a, int b) { return is_before(ranks[a], ranks[b]); });
      orders.add(order);
    };
    using Place = topology::RankPlace;
    add_sorted([](const Place& a, const Place& b) { return a.host < b.host; });
    add_sorted([](const Place& a, const Place& b) { return a.speed > b.speed; });
    add_sorted([](const Place& a, const Place& b) { return a.speed < b.speed; });
    add_sorted([](const Place& a, const Place& b) { return a.memory_bytes > b.memory_bytes; });
    add_sorted([](const Place& a, const Place& b) { return a.memory_bytes < b.memory_bytes; });
  }
  std::vector<Order> all = std::move(orders).orders();
  all.front().clear();
  return all;
}

}  // namespace trireme::partition
