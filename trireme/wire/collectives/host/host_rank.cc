#include "trireme/wire/collectives/host/host_rank.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trireme/base/error.h"

namespace trireme::collectives {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{50};  // between two calls of on_wait

}  // namespace

HostRank::HostRank(Arena arena, int rank, transport::Patience patience, OnWait on_wait)
    : arena_(arena), rank_(rank), patience_(patience), on_wait_(std::move(on_wait)) {}

void HostRank::arrive() { arena_.progress(rank_).set(++steps_); }

void HostRank::wait_for_all() {
  for (int i = 1; i < size(); ++i) {
    const int peer = (rank_ + i) % size();
    while (!arena_.progress(peer).wait_for(steps_, patience_, kLook)) {
      std::vector<int> late;
      for (int other = 0; other < size(); ++other) {
        if (!arena_.progress(other).has_reached(steps_)) late.push_back(other);
      }
      on_wait_(late);
    }
  }
}

void HostRank::compare() const {
  const int turn = static_cast<int>(sequence_ % 2);
  const auto said = [&](int rank) { return arena_.header(rank, turn).first(kDescriptionBytes); };
  for (int i = 1; i < size(); ++i) {
    if (std::memcmp(said(i).data(), said(0).data(), kDescriptionBytes) == 0) continue;
    throw Error(ErrorKind::kInvalidArgument,
                difference_text(0, parse_description(said(0)), i, parse_description(said(i))));
  }
}

void HostRank::begin(Description description) {
  description.sequence = sequence_;
  description.group_size = static_cast<std::uint32_t>(size());
  const auto bytes = to_bytes(description);
  const std::span<std::byte> header = arena_.header(rank_, static_cast<int>(sequence_ % 2));
  std::memcpy(header.data(), bytes.data(), bytes.size());
}

void HostRank::meet() {
  arrive();
  wait_for_all();
}

void HostRank::barrier() {
  begin({.operation = Operation::kBarrier});
  meet();
  compare();
  ++sequence_;
}

}  // namespace trireme::collectives
