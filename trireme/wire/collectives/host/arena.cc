#include "trireme/wire/collectives/host/arena.h"

#include <thread>

#include "trireme/base/check.h"
#include "trireme/error.h"

namespace trireme::collectives {
namespace {

constexpr std::size_t kLine = 128;  // two cache lines: processors fetch them in pairs
constexpr std::size_t kSlot = Arena::kHeaderBytes + Arena::kSlotBytes;
constexpr std::size_t kPage = 4096;

constexpr std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

constexpr std::size_t kCores = 2 * kLine;
constexpr std::size_t kSlots = kCores + rounded(sizeof(transport::Cores), kLine);
constexpr std::size_t kStaging = rounded(kSlots + 2 * kSlot, kPage);
constexpr std::size_t kRank = kStaging + Arena::kStagingBytes;

static_assert(sizeof(transport::Signal) <= kLine);
static_assert(sizeof(Way) * Arena::kWays + sizeof(Route) * Arena::kRoutes <= kLine);

}  // namespace

std::size_t Arena::bytes_for(int num_ranks) { return kRank * static_cast<std::size_t>(num_ranks); }

std::size_t Arena::staging_offset(int rank) {
  return kRank * static_cast<std::size_t>(rank) + kStaging;
}

void Arena::provide_control(const transport::SharedMemory& memory, int num_ranks) {
  for (int rank = 0; rank < num_ranks; ++rank) {
    memory.provide(kRank * static_cast<std::size_t>(rank), kStaging);
  }
}

Arena::Arena(std::span<std::byte> memory, int num_ranks) : memory_(memory), num_ranks_(num_ranks) {
  TRIREME_CHECK(memory.size() == bytes_for(num_ranks), "an arena of another size");
}

std::byte* Arena::of_rank(int rank) const {
  return memory_.data() + kRank * static_cast<std::size_t>(rank);
}

transport::Signal& Arena::progress(int rank) const {
  return *reinterpret_cast<transport::Signal*>(of_rank(rank));
}

std::atomic<Way>& Arena::way(std::size_t index) const {
  return reinterpret_cast<std::atomic<Way>*>(of_rank(0) + kLine)[index];
}

std::atomic<Route>& Arena::route(std::size_t index) const {
  return reinterpret_cast<std::atomic<Route>*>(of_rank(0) + kLine + sizeof(Way) * kWays)[index];
}

transport::Cores& Arena::cores(int rank) const {
  return *reinterpret_cast<transport::Cores*>(of_rank(rank) + kCores);
}

std::span<std::byte> Arena::header(int rank, int turn) const {
  return {of_rank(rank) + kSlots + kSlot * static_cast<std::size_t>(turn), kHeaderBytes};
}

std::span<std::byte> Arena::payload(int rank, int turn) const {
  return {header(rank, turn).data() + kHeaderBytes, kSlotBytes};
}

std::span<std::byte> Arena::piece(int rank, int turn) const {
  return {of_rank(rank) + kStaging + kPieceBytes * static_cast<std::size_t>(turn), kPieceBytes};
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Runs what talks to a local peer. One that has ended may have done so because of another's end,
/// of which the group is told: that is then the cause.
template <typename Talk>
auto with_first_cause(const Members& members, Talk talk) {
  try {
    return talk();
  } catch (const Error& lost) {
    if (lost.kind() != ErrorKind::kPeerLost) throw;
    for (const auto limit = Clock::now() + std::chrono::seconds(1); Clock::now() < limit;) {
      if (const auto error = members.failure()->error()) throw Error(*error);
      std::this_thread::sleep_for(milliseconds(1));
    }
    throw;
  }
}

}  // namespace

void give(const Members& members, Use use, const transport::SharedMemory& memory) {
  for (int i = 1; i < members.size(); ++i) {
    with_first_cause(members, [&] {
      members.endpoint.local_peers().give(members.ranks[i], members.tag(use), memory);
    });
  }
}

std::optional<transport::SharedMemory> take(const Members& members, Use use, milliseconds time) {
  return with_first_cause(members, [&] {
    return members.endpoint.local_peers().take(members.ranks[0], members.tag(use), time);
  });
}

}  // namespace trireme::collectives
