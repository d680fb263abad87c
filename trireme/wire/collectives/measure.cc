#include "trireme/wire/collectives/measure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "trireme/error.h"
#include "trireme/kernels/reduce/combine.h"
#include "trireme/wire/collectives/eligible.h"
#include "trireme/wire/endpoint/watch.h"

namespace trireme::collectives {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSmallRounds = 30;
constexpr int kMediumRounds = 3;
constexpr std::size_t kMediumBytes = 256 * 1024;
constexpr transport::Tag kTag = transport::Tag{1} << 63 | transport::Tag{1} << 62;  // of no group

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> numbers) {
  std::ranges::nth_element(numbers, numbers.begin() + std::ssize(numbers) / 2);
  return numbers[numbers.size() / 2];
}

/// A ring of ranks that all give to the next one at once.
class RingProbe {
 public:
  /// first, count   group ranks in the ring; this one is among them.
  RingProbe(Group& group, int first, int count) : group_(group), memory_(2 * kMediumBytes) {
    const int own = group.group_rank() - first;
    next_ = group.ranks()[first + (own + 1) % count];
    previous_ = group.ranks()[first + (own + count - 1) % count];
  }

  LinkCosts measure() {
    rounds(1, kMediumBytes);  // first use of connections and memory
    const double small = median(rounds(kSmallRounds, 1));
    const double medium = median(rounds(kMediumRounds, kMediumBytes));
    return {.alpha_s = small, .beta_s_per_byte = std::max(0.0, medium - small) / kMediumBytes};
  }

 private:
  std::vector<double> rounds(int count, std::size_t bytes) {
    std::vector<double> seconds;
    for (int i = 0; i < count; ++i) {
      const auto start = Clock::now();
      round(bytes);
      seconds.push_back(seconds_since(start));
    }
    return seconds;
  }

  void round(std::size_t bytes) {
    transport::Endpoint& endpoint = group_.endpoint();
    const std::span<std::byte> from = std::span(memory_).first(bytes);
    const std::span<std::byte> to = std::span(memory_).subspan(kMediumBytes, bytes);
    const auto recv = endpoint.recv(previous_, kTag, [to](std::size_t) { return to; });
    const auto send = endpoint.send(next_, kTag, from);
    wait(*recv, previous_);
    wait(*send, next_);
  }

  void wait(transport::Work& work, int peer) {
    transport::await(transport::message_work(work, group_.endpoint(), peer),
                     {.deadline = group_.deadline()},
                     {.rank = group_.endpoint().rank(), .operation = "measure_costs"});
  }

  Group& group_;
  std::vector<std::byte> memory_;
  int next_ = 0;
  int previous_ = 0;
};

/// Reduction of two sources in the cache, as segments are when they have just arrived.
double measure_gamma() {
  std::vector<std::byte> a(kMediumBytes);
  std::vector<std::byte> b(kMediumBytes);
  const std::array<const std::byte*, 2> sources = {a.data(), b.data()};
  const std::array<std::byte*, 1> targets = {a.data()};
  std::vector<double> seconds;
  for (int i = 0; i < 10; ++i) {
    const auto start = Clock::now();
    kernels::combine({}, sources, targets, kMediumBytes / sizeof(float));
    seconds.push_back(seconds_since(start));
  }
  return median(seconds) / (2 * kMediumBytes);
}

/// The largest of each number over the ranks.
template <std::size_t N>
std::array<double, N> largest(Group& group, const std::array<double, N>& own) {
  std::vector<std::array<double, N>> all(group.size());
  const auto work =
      group.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
  transport::await(group_work(*work, group), {.deadline = group.deadline()},
                   {.rank = group.endpoint().rank(), .operation = "measure_costs"});
  std::array<double, N> result = own;
  for (const auto& numbers : all) {
    for (std::size_t i = 0; i < N; ++i) result[i] = std::max(result[i], numbers[i]);
  }
  return result;
}

}  // namespace

Costs measure_costs(Group& group, int ranks_per_host) {
  if (ranks_per_host < 1 || group.size() % ranks_per_host != 0) {
    throw Error(ErrorKind::kInvalidArgument, "a group of " + std::to_string(group.size()) +
                                                 " ranks has no hosts of " +
                                                 std::to_string(ranks_per_host) + " each");
  }
  Costs costs{.gamma_s_per_byte = measure_gamma()};
  if (group.size() > 1) costs.network = RingProbe(group, 0, group.size()).measure();
  costs.local = costs.network;
  if (ranks_per_host > 1 && ranks_per_host < group.size()) {
    const int first = group.group_rank() / ranks_per_host * ranks_per_host;
    costs.local = RingProbe(group, first, ranks_per_host).measure();
  }
  const std::array<double, 5> agreed =
      largest<5>(group, {costs.network.alpha_s, costs.network.beta_s_per_byte, costs.local.alpha_s,
                         costs.local.beta_s_per_byte, costs.gamma_s_per_byte});
  return {.network = {agreed[0], agreed[1]},
          .local = {agreed[2], agreed[3]},
          .gamma_s_per_byte = agreed[4]};
}

Costs measure_world_costs(transport::Endpoint& endpoint, std::chrono::milliseconds deadline) {
  constexpr std::uint64_t kId = (std::uint64_t{1} << 60) - 1;  // of no other group
  if (endpoint.local_peers().count() + 1 == endpoint.world_size()) return kUsualCosts;
  std::vector<int> ranks(static_cast<std::size_t>(endpoint.world_size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> hosts;
  for (const int rank : ranks) hosts.push_back(endpoint.local_peers().host_of(rank));
  Group group(endpoint, ranks, {.name = "costs", .id = kId, .deadline = deadline});
  return measure_costs(group, common_ranks_per_host(hosts));
}

}  // namespace trireme::collectives
