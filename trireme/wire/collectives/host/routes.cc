#include "trireme/wire/collectives/host/routes.h"

#include <unistd.h>

#include <algorithm>
#include <bit>

namespace trireme::collectives {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSamples = 4;  // of whole operations, which others disturb more than a piece

/// Of a rank for another: less is staged, since a call of the system costs more than to copy twice.
constexpr std::size_t kLeastLent = 32 * 1024;

std::optional<std::size_t> kind_of(const Request& request, int num_ranks) {
  constexpr std::size_t kSizes = Arena::kRoutes / 2;
  const Collective operation = request.description.operation;
  const std::size_t bytes = request.bytes() / static_cast<std::size_t>(num_ranks);
  if (bytes < kLeastLent) return std::nullopt;
  if (operation != Collective::kAllGather && operation != Collective::kAllToAll)
    return std::nullopt;
  return (operation == Collective::kAllGather ? 0 : kSizes) +
         std::min<std::size_t>(std::bit_width(bytes / kLeastLent) - 1, kSizes - 1);
}

}  // namespace

Routes::Routes(const ArenaView& view)
    : view_(view), choosers_(view.rank == 0 ? Arena::kRoutes : 0, Chooser<Route>(kSamples)) {}

void Routes::begin(const Request& request, bool has_choice) {
  kind_ = has_choice ? kind_of(request, view_.size()) : std::nullopt;
  staged_in_ = {};
}

Route Routes::route() const {
  return kind_ ? view_.arena.route(*kind_).load(std::memory_order_relaxed) : Route::kStaged;
}

void Routes::note_met() {
  if (is_timed()) met_ = Clock::now();
}

void Routes::end() {
  if (!kind_ || choosers_.empty()) return;
  Chooser<Route>& chooser = choosers_[*kind_];
  const auto time = is_timed() ? staged_in_ + (Clock::now() - met_) : std::chrono::nanoseconds();
  chooser.end_turn(static_cast<double>(time.count()));
  view_.arena.route(*kind_).store(chooser.choice(), std::memory_order_relaxed);
}

LentMemory::LentMemory(const Members& members) : own_(members.group_rank) {
  for (const int rank : members.ranks) {
    const bool is_own = rank == members.endpoint.rank();
    const auto process = is_own ? ::getpid() : members.endpoint.local_peers().process_of(rank);
    const auto memory = process ? transport::ProcessMemory::open(*process) : std::nullopt;
    if (!memory) {
      give_up();
      return;
    }
    processes_.push_back(*memory);
  }
}

bool LentMemory::read(std::span<const Exchange::Move> moves,
                      std::span<const std::uint64_t> addresses) const {
  for (const Exchange::Move& move : moves) {
    if (move.from == own_) continue;
    if (processes_[move.from].read(addresses[move.from] + move.offset, move.to) != 0) return false;
  }
  return true;
}

}  // namespace trireme::collectives
