#include "trireme/plan/layout/choose_regions.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_queries.h"

// For a stage of four nodes, each of which makes 10 bytes that the next takes, and one value of 1 byte between the second and
// the third:
//
//     node        0    1    2    3
//     new        10    1   10   10
//     before      0   10   11   21   31     bytes made before a position
//     across          10    1   10          bytes made before it and used from it on
//
// Two regions begin at 0 and 2: there the least crosses, and neither side has much more than half.

namespace trireme::layout {
namespace {

/// What a stage makes, by memory: where it is made, last used, and its bytes. Views of parameters and fields are new to no
/// region, but are kept like others where they cross.
struct MadeMemory {
  int made = 0;
  int last_use = 0;
  bool is_new = true;
  std::int64_t bytes = 0;
};

/// Bytes of a stage's tensors of one microbatch, and where it may be cut.
class StageBytes {
 public:
  StageBytes(const graph::Graph& planned, const Plan& plan, int stage)
      : begin_(plan.stages[stage].begin),
        end_(plan.stages[stage].end),
        before_(size() + 1),
        across_(size() + 1) {
    find_memory(planned, plan.batch.microbatch);
    for (const MadeMemory& memory : memory_) {
      before_[memory.made + 1 - begin_] += memory.is_new ? memory.bytes : 0;
      if (memory.last_use <= memory.made) continue;
      across_[memory.made + 1 - begin_] += memory.bytes;
      if (memory.last_use < end_) across_[memory.last_use + 1 - begin_] -= memory.bytes;
    }
    std::partial_sum(before_.begin(), before_.end(), before_.begin());
    std::partial_sum(across_.begin(), across_.end(), across_.begin());
    const std::vector<bool> allowed = graph::allowed_cuts(planned);
    for (int c = begin_ + 1; c < end_; ++c) {
      if (allowed[c]) cuts_.push_back(c);
    }
  }

  int num_cuts() const { return static_cast<int>(cuts_.size()); }

  std::vector<int> even_regions(int num_regions) const {
    std::vector<int> begins;
    auto first = cuts_.begin();
    for (int r = 1; r < num_regions && first != cuts_.end(); ++r) {
      const std::int64_t each = before_.back() / num_regions;
      const auto cut = cheapest(first, each * r, each / 4);
      begins.push_back(*cut);
      first = cut + 1;
    }
    return begins;
  }

  /// Most bytes at once of a region and of what regions before it keep for later ones.
  std::int64_t most_held(const std::vector<int>& begins) const {
    std::vector<std::int64_t> held(begins.size() + 1);  // By region.
    for (const MadeMemory& memory : memory_) {
      const auto next = std::ranges::upper_bound(begins, memory.made);
      auto region = held.begin() + (next - begins.begin());
      *region += memory.is_new ? memory.bytes : 0;
      if (next == begins.end() || *next > memory.last_use) continue;
      while (++region != held.end()) *region += memory.bytes;
    }
    return std::ranges::max(held);
  }

 private:
  using Cut = std::vector<int>::const_iterator;

  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }

  void find_memory(const graph::Graph& planned, std::int64_t microbatch) {
    std::map<int, MadeMemory> by_storage;
    std::set<int> outside;
    for (const graph::Value& value : planned.values) {
      if (value.source != graph::ValueSource::kNode) outside.insert(value.storage_id);
    }
    for (int p = begin_; p < end_; ++p) {
      for (const graph::ValueId id : graph::input_values(planned.nodes[p])) {
        const auto known = by_storage.find(planned.values[id].storage_id);
        if (known != by_storage.end()) known->second.last_use = p;
      }
      for (const graph::ValueId id : planned.nodes[p].outputs) {
        if (id < 0 || planned.values[id].source != graph::ValueSource::kNode) continue;
        const int storage = planned.values[id].storage_id;
        const MadeMemory fresh{p, p, !outside.contains(storage), 0};
        MadeMemory& memory = by_storage.try_emplace(storage, fresh).first->second;
        memory.bytes = std::max(memory.bytes, graph::bytes_at(planned.values[id], microbatch));
      }
    }
    for (const auto& [storage, memory] : by_storage) memory_.push_back(memory);
  }

  /// From `first` on, where least crosses among cuts with about `ideal` bytes before them; else the nearest.
  Cut cheapest(Cut first, std::int64_t ideal, std::int64_t slack) const {
    const auto key = [&](int cut) {
      const std::int64_t off = std::abs(before_[cut - begin_] - ideal);
      return off <= slack ? std::pair(across_[cut - begin_], off)
                          : std::pair(std::numeric_limits<std::int64_t>::max(), off);
    };
    return std::min_element(first, cuts_.end(), [&](int a, int b) { return key(a) < key(b); });
  }

  int begin_, end_;
  std::vector<MadeMemory> memory_;
  std::vector<std::int64_t> before_, across_;  ///< By position from the stage's first.
  std::vector<int> cuts_;
};

}  // namespace

std::vector<int> even_regions(const graph::Graph& planned, const Plan& plan, int stage,
                              int num_regions) {
  return StageBytes(planned, plan, stage).even_regions(num_regions);
}

void set_regions(const graph::Graph& planned, Plan& plan, int stage) {
  constexpr int kMostRegions = 64;
  const StageBytes bytes(planned, plan, stage);
  std::vector<int>& best = plan.stages[stage].regions;
  best.clear();
  for (int r = 2; r <= std::min(kMostRegions, bytes.num_cuts() + 1); ++r) {
    std::vector<int> begins = bytes.even_regions(r);
    if (bytes.most_held(begins) < bytes.most_held(best)) best = std::move(begins);
  }
}

}  // namespace trireme::layout
