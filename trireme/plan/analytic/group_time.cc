#include "trireme/plan/analytic/group_time.h"

#include <algorithm>
#include <cmath>

// A ring moves 2(n - 1)/n of the buffer over each of its links for a sum, half of that for a gather. Large sums over hosts go up
// and down a tree of hosts, gathers go round all ranks:
//
//     sum      2 log2(n) latencies
//     gather   a latency for each host, a tenth of it for each further rank of a host

namespace trireme::analytic {

std::int64_t GroupTimes::ranks_per_host(const CollectiveGroup& group) const {
  const std::int64_t fit = std::max<std::int64_t>(1, machine_.devices_per_host / group.stride);
  return std::min(group.num_ranks, fit);
}

double GroupTimes::bytes_per_s(const CollectiveGroup& group) const {
  const double link = machine_.link_bytes_per_s * achieved_.link;
  const std::int64_t local = ranks_per_host(group);
  if (group.num_ranks <= local) return link;
  const double cards = static_cast<double>(local) * machine_.network_share() * achieved_.network;
  return local > 1 ? std::min(link, cards) : cards;
}

double GroupTimes::all_reduce_s(const CollectiveGroup& group, double bytes) const {
  if (group.num_ranks < 2) return 0;
  const auto n = static_cast<double>(group.num_ranks);
  return 2 * (n - 1) / n * bytes / bytes_per_s(group) +
         2 * std::log2(n) * achieved_.latency_us * 1e-6;
}

double GroupTimes::gather_s(const CollectiveGroup& group, double bytes) const {
  if (group.num_ranks < 2) return 0;
  const auto n = static_cast<double>(group.num_ranks);
  const double hosts = n / static_cast<double>(ranks_per_host(group));
  return (n - 1) / n * bytes / bytes_per_s(group) +
         (hosts + 0.1 * (n - hosts)) * achieved_.latency_us * 1e-6;
}

double GroupTimes::message_s(std::int64_t stride, double bytes) const {
  const bool is_near = stride < machine_.devices_per_host;
  const double rate = is_near ? machine_.link_bytes_per_s * achieved_.link
                              : machine_.network_share() * achieved_.network;
  return bytes / rate + achieved_.latency_us * 1e-6;
}

}  // namespace trireme::analytic
