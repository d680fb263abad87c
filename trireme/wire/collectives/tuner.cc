// Letters as in docs/algorithms.md: n ranks, g of them per host, M bytes.

#include "trireme/wire/collectives/tuner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <vector>

#include "trireme/error.h"
#include "trireme/wire/collectives/eligible.h"

namespace trireme::collectives {
namespace {

/// What one rank, or its host, does in an operation at most.
struct Share {
  double hops = 0;           ///< Messages one after another.
  double bytes = 0;          ///< Through the link, in one direction.
  double reduced_bytes = 0;  ///< Read to be reduced.
};

struct Numbers {
  double n;
  double g;
  double bytes;  ///< M
  double s = 0;  ///< Reducers.

  bool is_one_host() const { return g >= n; }

  /// Of the busiest link of an all_reduce with reducers, one rank a host (chunk.h).
  double reducer_bytes() const {
    const double w = n - s;
    const double x = std::max(0.0, (w / s - 1) / (w - 2 + w * w / s));
    return (1 + (w - 2) * x) * bytes;
  }

  /// Where all give to all between hosts: bytes of time in which links idle, since who gets from many
  /// waits for the queues of all. Nothing where connections' buffers hold the hop.
  double queued(double hop_bytes) const {
    constexpr double kBuffer = 96 * 1024;  // of a connection, as measured (benchmarks/results)
    const double buffers = is_one_host() ? 0 : std::max(0.0, n - sharing() - 1) * kBuffer;
    return std::clamp(hop_bytes - buffers, 0.0, buffers);
  }

  /// Ranks behind the same link.
  double sharing() const { return is_one_host() ? 1 : g; }

  /// Bytes out of a link whose ranks each send `bytes_per_peer` to every rank behind another one.
  double to_all(double bytes_per_peer) const {
    return sharing() * (n - sharing()) * bytes_per_peer;
  }
};

/// The ranks' parts of the data after halving, as 1/n of it, and the seconds so far: a subtree of
/// `count` ranks.
struct HalvingCost {
  double part;
  double seconds;
};

HalvingCost halving_cost(int count, const Numbers& numbers, const Costs& costs) {
  if (count == 1) return {1, 0};
  const int left_count = static_cast<int>(std::bit_floor(static_cast<unsigned>(count) - 1));
  const HalvingCost left = halving_cost(left_count, numbers, costs);
  const HalvingCost right = halving_cost(count - left_count, numbers, costs);
  const bool is_even = left_count * 2 == count;
  const double part = is_even ? left.part / 2 : left.part;
  const double moved = is_even ? part : std::max(left.part, right.part);
  const bool is_local = count <= numbers.g;
  const LinkCosts& link = is_local ? costs.local : costs.network;
  const double sharing = is_local ? 1 : numbers.sharing();
  // There and back.
  const double seconds =
      2 * (link.alpha_s + sharing * moved * numbers.bytes * link.beta_s_per_byte) +
      2 * part * numbers.bytes * costs.gamma_s_per_byte;
  return {part, std::max(left.seconds, right.seconds) + seconds};
}

double seconds_of(const Share& share, const LinkCosts& link, double gamma) {
  return share.hops * link.alpha_s + share.bytes * link.beta_s_per_byte +
         share.reduced_bytes * gamma;
}

Share one_shot_share(Operation operation, const Numbers& m) {
  // The root's link is the bottleneck of reduce and broadcast.
  const bool has_one_end = operation != Operation::kAllReduce;
  const double bytes = has_one_end ? (m.n - m.sharing()) * m.bytes : m.to_all(m.bytes);
  const bool is_reduced = operation != Operation::kBroadcast;
  return {1, bytes, is_reduced ? m.n * m.bytes : 0};
}

Share two_hop_share(Operation operation, const Numbers& m) {
  const double hop_bytes = m.to_all(m.bytes / m.n);
  switch (operation) {
    case Operation::kAllReduce:
      if (m.s > 0) return {2, m.reducer_bytes(), m.bytes};
      return {2, 2 * hop_bytes + m.queued(hop_bytes), m.bytes};
    case Operation::kReduce:
      return {2, 2 * hop_bytes, m.bytes};
    case Operation::kReduceScatter:
      return {1, hop_bytes, m.bytes};
    case Operation::kAllGather:
      return {1, hop_bytes + m.queued(hop_bytes), 0};
    case Operation::kBroadcast:
      return {2, 2 * hop_bytes, 0};
    case Operation::kBarrier:
      return {std::ceil(std::log2(m.n)), 0, 0};
    default:
      return {1, hop_bytes, 0};
  }
}

/// Only one rank of a host sends out of it.
Share ring_share(Operation operation, const Numbers& m) {
  const double steps = m.n - 1;
  const double bytes = steps / m.n * m.bytes;
  if (operation == Operation::kAllReduce) return {2 * steps, 2 * bytes, 2 * bytes};
  return {steps, bytes, operation == Operation::kAllGather ? 0 : 2 * bytes};
}

double two_level_seconds(const Numbers& m, const Costs& costs) {
  const double hosts = m.n / m.g;
  const Share inside{2, 2 * (m.g - 1) / m.g * m.bytes, m.bytes};
  const Share between{2, 2 * (hosts - 1) / hosts * m.bytes, m.bytes / m.g};
  return seconds_of(inside, costs.local, costs.gamma_s_per_byte) +
         seconds_of(between, costs.network, costs.gamma_s_per_byte);
}

/// Of an all_to_all; m.bytes is that of a part. Its messages differ in nothing but their number, so
/// what each costs its sender counts: half an alpha beside the first, as measured
/// (benchmarks/results).
constexpr double kNextMessage = 0.5;

double two_hop_exchange_seconds(const Numbers& m, const LinkCosts& link, const Costs& costs) {
  const double behind = m.n - m.sharing();
  return seconds_of({1 + kNextMessage * (behind - 1), m.to_all(m.bytes)}, link, 0) +
         seconds_of({kNextMessage * (m.sharing() - 1)}, costs.local, 0);
}

/// Inside, a message has parts for every host.
double two_level_exchange_seconds(const Numbers& m, const Costs& costs) {
  const double hosts = m.n / m.g;
  return seconds_of({1 + kNextMessage * (m.g - 2), (m.g - 1) * hosts * m.bytes}, costs.local, 0) +
         seconds_of({1 + kNextMessage * (hosts - 2), m.to_all(m.bytes)}, costs.network, 0);
}

double bytes_of(const Description& description) {
  return static_cast<double>(description.count) *
         static_cast<double>(size_bytes(description.dtype));
}

}  // namespace

double predicted_seconds(Algorithm algorithm, const TunerTask& task, const Costs& costs) {
  check_eligible(algorithm, task.description, task.ranks_per_host);
  const Numbers m{.n = static_cast<double>(task.description.group_size),
                  .g = static_cast<double>(task.ranks_per_host),
                  .bytes = bytes_of(task.description),
                  .s = task.description.operation == Operation::kAllReduce
                           ? static_cast<double>(task.description.root)
                           : 0};
  if (m.n <= 1) return 0;
  const LinkCosts& link = m.is_one_host() && m.g > 1 ? costs.local : costs.network;
  const Operation operation = task.description.operation;
  switch (algorithm) {
    case Algorithm::kOneShot:
      return seconds_of(one_shot_share(operation, m), link, costs.gamma_s_per_byte);
    case Algorithm::kTwoHop:
      if (operation == Operation::kAllToAll) return two_hop_exchange_seconds(m, link, costs);
      return seconds_of(two_hop_share(operation, m), link, costs.gamma_s_per_byte);
    case Algorithm::kHalvingDoubling:
      return halving_cost(static_cast<int>(m.n), m, costs).seconds;
    case Algorithm::kRing:
      return seconds_of(ring_share(operation, m), link, costs.gamma_s_per_byte);
    case Algorithm::kTwoLevel:
      return operation == Operation::kAllToAll ? two_level_exchange_seconds(m, costs)
                                               : two_level_seconds(m, costs);
  }
  return 0;
}

Algorithm cheapest(const TunerTask& task, const Costs& costs) {
  const std::vector<Algorithm> eligible =
      eligible_algorithms(task.description, task.ranks_per_host);
  const double chunk_bytes = bytes_of(task.description) / std::max(1U, task.description.group_size);
  // One-shot sends everything to everyone: that is no way out of small chunks where n is large.
  const bool has_other = std::ranges::any_of(eligible, [](Algorithm algorithm) {
    return algorithm != Algorithm::kTwoHop && algorithm != Algorithm::kOneShot;
  });
  const bool is_too_fine = has_other && task.description.operation == Operation::kAllReduce &&
                           chunk_bytes < kMinTwoHopChunkBytes;
  std::vector<Algorithm> candidates;
  for (const Algorithm algorithm : eligible) {
    if (algorithm != Algorithm::kTwoHop || !is_too_fine) candidates.push_back(algorithm);
  }
  if (candidates.empty()) check_eligible(Algorithm::kTwoHop, task.description);  // throws
  return *std::ranges::min_element(candidates, {}, [&](Algorithm algorithm) {
    return predicted_seconds(algorithm, task, costs);
  });
}

std::string to_text(const Costs& costs) {
  std::array<char, 96> text{};
  const auto line = [&text](const char* what, const LinkCosts& cost) {
    std::snprintf(text.data(), text.size(), "%-14s  %13.1f  %11.4f  ", what, cost.alpha_s * 1e6,
                  cost.beta_s_per_byte * 1e9);
    std::string line = text.data();
    std::snprintf(text.data(), text.size(), "%6.1f\n", 1e-9 / cost.beta_s_per_byte);
    return line + (cost.beta_s_per_byte > 0 ? text.data() : "     -\n");
  };
  return "network costs     us / message    ns / byte    GB/s\n" +
         line("between hosts", costs.network) + line("on a host", costs.local) +
         line("reducing", {.alpha_s = 0, .beta_s_per_byte = costs.gamma_s_per_byte});
}

std::string choices_text(const TunerTask& task, const Costs& costs) {
  const std::vector<Algorithm> eligible =
      eligible_algorithms(task.description, task.ranks_per_host);
  const auto padded = [](std::string text, std::size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
  };
  std::string table = padded("bytes", 12);
  for (const Algorithm algorithm : eligible) table += padded(std::string(to_text(algorithm)), 18);
  table += "  chosen\n";
  for (std::int64_t bytes = 1024; bytes <= std::int64_t{1} << 30; bytes *= 4) {
    TunerTask sized = task;
    sized.description.count = bytes / static_cast<std::int64_t>(size_bytes(task.description.dtype));
    table += padded(std::to_string(bytes), 12);
    for (const Algorithm algorithm : eligible) {
      std::array<char, 32> text{};
      const double us = predicted_seconds(algorithm, sized, costs) * 1e6;
      std::snprintf(text.data(), text.size(), "%.1f us", us);
      table += padded(text.data(), 18);
    }
    table += "  " + std::string(to_text(cheapest(sized, costs))) + "\n";
  }
  return table;
}

namespace {

double read_cost(const JsonField& field) {
  const double cost = field.real();
  if (!(cost >= 0 && cost < 1e9)) field.fail_expected("seconds, not negative");
  return cost;
}

Json link_to_json(const LinkCosts& link) {
  return {{"alpha_s", link.alpha_s}, {"beta_s_per_byte", link.beta_s_per_byte}};
}

LinkCosts link_from_json(const JsonField& field) {
  JsonObject object(field);
  LinkCosts link;
  link.alpha_s = read_cost(object.required("alpha_s"));
  link.beta_s_per_byte = read_cost(object.required("beta_s_per_byte"));
  object.finish();
  return link;
}

}  // namespace

Json to_json(const Costs& costs) {
  return {{"network", link_to_json(costs.network)},
          {"local", link_to_json(costs.local)},
          {"gamma_s_per_byte", costs.gamma_s_per_byte}};
}

Costs costs_from_json(const Json& body) {
  JsonObject object(JsonField(body, "network_costs"));
  Costs costs;
  costs.network = link_from_json(object.required("network"));
  costs.local = link_from_json(object.required("local"));
  costs.gamma_s_per_byte = read_cost(object.required("gamma_s_per_byte"));
  object.finish();
  return costs;
}

std::string save(const Costs& costs, const std::filesystem::path& path) {
  return write_document(path, kCostsDocument, to_json(costs));
}

Costs load_costs(const std::filesystem::path& path) {
  const Json body = read_document(path, kCostsDocument);
  try {
    return costs_from_json(body);
  } catch (const Error& error) {
    throw Error(error.kind(), "'" + path.string() + "': " + error.message());
  }
}

}  // namespace trireme::collectives
