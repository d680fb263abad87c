#include "packs/vision/data/kept_room.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace trireme::vision {

struct KeptRoom::Part::State {
  std::mutex mutex;  ///< Guards `gaps`.
  Kind kind = Kind::kMemory;
  std::map<std::uint64_t, std::uint64_t>
      gaps;  ///< Where they begin, and bytes; none touches another.

  void give(std::uint64_t offset, std::uint64_t bytes) {
    const std::lock_guard lock(mutex);
    if (kind == Kind::kMemory) {
      gaps[0] += bytes;
      return;
    }
    const auto next = gaps.lower_bound(offset);
    if (next != gaps.end() && next->first == offset + bytes) {
      bytes += next->second;
      gaps.erase(next);
    }
    const auto behind = gaps.lower_bound(offset);
    if (behind != gaps.begin()) {
      const auto before = std::prev(behind);
      if (before->first + before->second == offset) {
        before->second += bytes;
        return;
      }
    }
    gaps.emplace(offset, bytes);
  }

  /// Whether there was room; `offset` is where.
  bool take(std::uint64_t bytes, std::uint64_t& offset) {
    const std::lock_guard lock(mutex);
    const auto gap = std::ranges::find_if(gaps, [&](const auto& g) { return g.second >= bytes; });
    if (gap == gaps.end()) return false;
    offset = gap->first;
    const std::uint64_t rest = gap->second - bytes;
    if (kind == Kind::kMemory) {
      gap->second = rest;
      return true;
    }
    gaps.erase(gap);
    if (rest > 0) gaps.emplace(offset + bytes, rest);
    return true;
  }
};

KeptRoom::Part::Part(std::shared_ptr<State> state, std::uint64_t offset, std::uint64_t bytes)
    : state_(std::move(state)), offset_(offset), bytes_(bytes) {}

KeptRoom::Part::~Part() { state_->give(offset_, bytes_); }

KeptRoom::KeptRoom(std::int64_t bytes, Kind kind) : state_(std::make_shared<Part::State>()) {
  state_->kind = kind;
  state_->gaps[0] = static_cast<std::uint64_t>(bytes);
}

std::shared_ptr<const KeptRoom::Part> KeptRoom::take(std::int64_t bytes) {
  const auto size = static_cast<std::uint64_t>(bytes);
  std::uint64_t offset = 0;
  if (!state_->take(size, offset)) return nullptr;
  return std::shared_ptr<const Part>(new Part(state_, offset, size));
}

}  // namespace trireme::vision
