// Neighbours first: at distance d = 1, 2, 4, ... the ranks r and r + d, which have the same part of
// the data, each combined over its d neighbours, exchange halves: one keeps the lower half, the
// other the upper one, combined over 2d ranks. Afterwards the way back spreads the results. Four
// ranks, data `abcd`; (01) is combined over ranks 0 and 1:
//
//     rank 0   ab(01)   a(0123)   ab   abcd
//     rank 1   cd(01)   c(0123)   cd   abcd
//     rank 2   ab(23)   b(0123)   ab   abcd
//     rank 3   cd(23)   d(0123)   cd   abcd
//
// This is THE tree. Where it has a left side of L ranks and a shorter right one, each rank on the
// right gives its part to those on the left who have the same elements, and gets the results back
// from them. Three ranks: 0 and 1 exchange halves; 2 gives one half to 0, the other to 1.
//
// Each exchange goes by segments, in the order in which the next one needs them: on the way there a
// rank gets first what it will give away at once, on the way back first what its peer has had for
// longest. So the next exchange begins while this one is under way, and links do not idle.

#include <algorithm>
#include <bit>

#include "trireme/wire/collectives/schedule/algorithms.h"

namespace trireme::collectives {
namespace {

/// Ranks [first, first + count): a subtree.
struct Block {
  int first;
  int count;

  bool has(int rank) const { return rank >= first && rank < first + count; }
  Block left() const {
    return {first, static_cast<int>(std::bit_floor(static_cast<unsigned>(count) - 1))};
  }
  Block right() const { return {first + left().count, count - left().count}; }
  bool is_even() const { return left().count == right().count; }
  Block side_of(int rank) const { return left().has(rank) ? left() : right(); }
};

constexpr std::int64_t kUnit = 16;  // elements: halves keep the alignment of chunks

Chunk half_of(const Chunk& chunk, bool is_upper) {
  const std::int64_t middle =
      std::min(chunk.end, chunk.begin + (chunk.size() / 2 + kUnit - 1) / kUnit * kUnit);
  return is_upper ? Chunk{middle, chunk.end} : Chunk{chunk.begin, middle};
}

Chunk common_part(const Chunk& a, const Chunk& b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

class HalvingDoubling {
 public:
  explicit HalvingDoubling(const CollectiveSetting& setting) : setting_(setting) {}

  CollectiveSchedule make() {
    const Block all{0, setting_.num_ranks};
    gather_in(all);
    spread_out(all);
    return builder_.take();
  }

 private:
  /// The elements of which `rank` has the combination over `block` after its merge.
  Chunk owned(const Block& block, int rank) const {
    if (block.count == 1) return {0, setting_.count};
    const Chunk before = owned(block.side_of(rank), rank);
    if (block.is_even()) return half_of(before, block.right().has(rank));
    return block.left().has(rank) ? before : Chunk{before.begin, before.begin};
  }

  void gather_in(const Block& block) {
    if (block.count == 1) return;
    const Block side = block.side_of(setting_.rank);
    gather_in(side);
    if (block.is_even()) {
      exchange_halves(block);
    } else {
      give_to_left(block);
    }
  }

  int partner(const Block& block) const { return partner(block, setting_.rank); }
  static int partner(const Block& block, int rank) {
    const int distance = block.left().count;
    return block.left().has(rank) ? rank + distance : rank - distance;
  }

  /// The block of which this one is a side.
  Block around(const Block& block) const {
    Block result{0, setting_.num_ranks};
    for (Block side = result.side_of(block.first); side.count != block.count;
         side = result.side_of(block.first)) {
      result = side;
    }
    return result;
  }

  /// What `rank` owns of a block, in the order in which it goes on.
  std::vector<Chunk> wanted(const Block& block, int rank) const {
    if (block.count == setting_.num_ranks) return {owned(block, rank)};
    const Block next = around(block);
    if (!next.is_even()) return {owned(block, rank)};
    std::vector<Chunk> result = {half_of(owned(block, rank), !next.right().has(rank))};
    const std::vector<Chunk> kept = wanted(next, rank);
    result.insert(result.end(), kept.begin(), kept.end());
    return result;
  }

  /// The same elements, in the order in which `rank` has them on the way back.
  std::vector<Chunk> available(const Block& block, int rank) const {
    if (block.count == setting_.num_ranks) return {owned(block, rank)};
    const Block last = around(block);
    if (!last.is_even()) return {owned(block, rank)};
    std::vector<Chunk> result = available(last, rank);
    const std::vector<Chunk> received = available(last, partner(last, rank));
    result.insert(result.end(), received.begin(), received.end());
    return result;
  }

  void exchange_halves(const Block& block) {
    for (const Chunk& part : wanted(block, partner(block))) send(partner(block), part);
    for (const Chunk& part : wanted(block, setting_.rank)) recv_and_merge(partner(block), part);
  }

  void give_to_left(const Block& block) {
    for_pairs(block, [&](int peer, const Chunk& part) {
      block.right().has(setting_.rank) ? send(peer, part) : recv_and_merge(peer, part);
    });
  }

  void spread_out(const Block& block) {
    if (block.count == 1) return;
    if (block.is_even()) {
      for (const Chunk& part : available(block, setting_.rank)) send(partner(block), part);
      for (const Chunk& part : available(block, partner(block))) recv(partner(block), part);
    } else {
      for_pairs(block, [&](int peer, const Chunk& part) {
        block.right().has(setting_.rank) ? recv(peer, part) : send(peer, part);
      });
    }
    spread_out(block.side_of(setting_.rank));
  }

  /// Ranks of the other side of an uneven block and the elements that both have.
  template <typename Act>
  void for_pairs(const Block& block, Act act) const {
    const Block own = block.side_of(setting_.rank);
    const Block other = own.first == block.first ? block.right() : block.left();
    for (int i = 0; i < other.count; ++i) {
      const int peer = other.first + (setting_.rank + i) % other.count;
      act(peer, common_part(owned(own, setting_.rank), owned(other, peer)));
    }
  }

  void send(int peer, const Chunk& part) {
    for (const Range& segment : segments_of(internal::data_range(part), setting_.segment)) {
      builder_.send(peer, segment);
    }
  }

  void recv(int peer, const Chunk& part) {
    for (const Range& segment : segments_of(internal::data_range(part), setting_.segment)) {
      builder_.recv(peer, segment);
    }
  }

  void recv_and_merge(int peer, const Chunk& part) {
    const std::vector<Range> own = segments_of(internal::data_range(part), setting_.segment);
    const std::vector<Range> others = segments_of(builder_.scratch(part.size()), setting_.segment);
    for (const Range& segment : others) builder_.recv(peer, segment);
    for (std::size_t i = 0; i < own.size(); ++i) {
      const bool is_left = setting_.rank < peer;
      builder_.reduce(own[i], {is_left ? own[i] : others[i], is_left ? others[i] : own[i]});
    }
  }

  const CollectiveSetting& setting_;
  ScheduleBuilder builder_;
};

CollectiveSchedule halving_doubling_schedule(const CollectiveSetting& setting) {
  if (setting.operation != Collective::kAllReduce) internal::refuse_schedule(setting);
  return HalvingDoubling(setting).make();
}

bool halving_doubling_can(const Description& task, int /*ranks_per_host*/) {
  return task.operation == Collective::kAllReduce && task.root == 0 /* no reducers */ &&
         !internal::needs_all_at_once(task) && internal::has_exact_partials(task);
}

/// The ranks' parts of the data after halving, as 1/n of it, and the seconds so far: a subtree of
/// `count` ranks.
struct HalvingCost {
  double part;
  double seconds;
};

HalvingCost halving_cost(int count, const CostCase& m, const Costs& costs) {
  if (count == 1) return {1, 0};
  const int left_count = static_cast<int>(std::bit_floor(static_cast<unsigned>(count) - 1));
  const HalvingCost left = halving_cost(left_count, m, costs);
  const HalvingCost right = halving_cost(count - left_count, m, costs);
  const bool is_even = left_count * 2 == count;
  const double part = is_even ? left.part / 2 : left.part;
  const double moved = is_even ? part : std::max(left.part, right.part);
  const bool is_local = count <= m.g;
  const LinkCosts& link = is_local ? costs.local : costs.network;
  const double sharing = is_local ? 1 : m.sharing();
  // There and back.
  const double seconds = 2 * (link.alpha_s + sharing * moved * m.bytes * link.beta_s_per_byte) +
                         2 * part * m.bytes * costs.gamma_s_per_byte;
  return {part, std::max(left.seconds, right.seconds) + seconds};
}

double halving_doubling_seconds(const CostCase& m, const Costs& costs) {
  return halving_cost(static_cast<int>(m.n), m, costs).seconds;
}

}  // namespace

const AlgorithmEntry kHalvingDoublingEntry{.algorithm = Algorithm::kHalvingDoubling,
                                           .name = "halving_doubling",
                                           .can = halving_doubling_can,
                                           .seconds = halving_doubling_seconds,
                                           .schedule = halving_doubling_schedule};

}  // namespace trireme::collectives
