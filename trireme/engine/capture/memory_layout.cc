// First fit by time: blocks that live from one phase to another are stacked at the bottom, in the region of these phases, since
// all of them are wanted at once between the two; then each other block, the largest first, goes into the lowest gap between those
// that live while it does. So what is kept serves the forward before it is written and the backward after its last use.

#include "trireme/engine/capture/memory_layout.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace trireme::capture {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct Taken {
  std::size_t begin, end;
};

/// The lowest place for `bytes` between `taken`.
std::size_t lowest_gap(std::vector<Taken> taken, std::size_t bytes) {
  std::sort(taken.begin(), taken.end(),
            [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
  std::size_t at = 0;
  for (const Taken& one : taken) {
    if (at + bytes <= one.begin) return at;
    at = std::max(at, one.end);
  }
  return at;
}

/// For a block of one phase: regions that the phase does not have, and edges of those that it has, across which no block lies.
std::vector<Taken> beyond_reach(const MemoryLayout& layout, int phase) {
  std::vector<Taken> taken = {{layout.kept_bytes, layout.kept_bytes}};
  for (const KeptRegion& region : layout.regions) {
    const bool is_there = region.first <= phase && phase <= region.last;
    taken.push_back({region.begin, region.begin + (is_there ? 0 : region.bytes)});
  }
  return taken;
}

}  // namespace

int phase_at(const PhaseBegins& begins, int step) {
  int phase = kNumPhases - 1;
  while (phase > 0 && step < begins[phase]) --phase;
  return phase;
}

MemoryLayout lay_out(const std::vector<Block>& blocks, const PhaseBegins& begins) {
  MemoryLayout layout;
  layout.offsets.resize(blocks.size());
  std::vector<std::size_t> placed, others;
  for (KeptRegion& region : layout.regions) {
    region.begin = layout.kept_bytes;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (phase_at(begins, blocks[i].first) != region.first ||
          phase_at(begins, blocks[i].last) != region.last) {
        continue;
      }
      layout.offsets[i] = layout.kept_bytes;
      layout.kept_bytes += aligned(blocks[i].bytes);
      placed.push_back(i);
    }
    region.bytes = layout.kept_bytes - region.begin;
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (phase_at(begins, blocks[i].first) == phase_at(begins, blocks[i].last)) others.push_back(i);
  }
  std::ranges::stable_sort(others, std::greater(), [&](std::size_t i) { return blocks[i].bytes; });
  for (const std::size_t i : others) {
    const Block& block = blocks[i];
    const int phase = phase_at(begins, block.first);
    std::vector<Taken> taken = beyond_reach(layout, phase);
    for (const std::size_t j : placed) {
      if (blocks[j].first > block.last || blocks[j].last < block.first) continue;
      taken.push_back({layout.offsets[j], layout.offsets[j] + aligned(blocks[j].bytes)});
    }
    layout.offsets[i] = lowest_gap(std::move(taken), aligned(block.bytes));
    const std::size_t end = layout.offsets[i] + aligned(block.bytes);
    std::size_t& most = layout.phase_bytes[phase];
    if (end > layout.kept_bytes) most = std::max(most, end - layout.kept_bytes);
    placed.push_back(i);
  }
  return layout;
}

}  // namespace trireme::capture
