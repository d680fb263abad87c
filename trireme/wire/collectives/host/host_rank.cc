#include "trireme/wire/collectives/host/host_rank.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/error.h"
#include "trireme/wire/collectives/host/exchange.h"

namespace trireme::collectives {
namespace {

using std::chrono::microseconds;
using Clock = std::chrono::steady_clock;

/// From so many ranks on, each combines a part for all (two-shot) instead of everything for itself,
/// where there is more than a little.
constexpr int kTwoShotRanks = 3;
constexpr std::size_t kOneShotBytes = 16 * 1024;

/// Whether the slots have room for all of it: an all_reduce of little, or a barrier.
bool is_small(const Request& request) {
  const Collective operation = request.description.operation;
  return operation == Collective::kBarrier ||
         (operation == Collective::kAllReduce && request.data.bytes.size() <= Arena::kSlotBytes);
}

constexpr std::size_t kLeastStreamed = 8 * 1024;  // smaller ones go through the caches

/// Operations in which all ranks stage and take alike have a way of their own for each power of two
/// of bytes.
std::optional<std::size_t> kind_of(const Request& request) {
  constexpr std::array kAlike = {Collective::kAllReduce, Collective::kReduceScatter,
                                 Collective::kAllGather, Collective::kAllToAll};
  constexpr std::size_t kSizes = std::bit_width(Arena::kPieceBytes / kLeastStreamed);
  static_assert(kAlike.size() * kSizes <= Arena::kWays);
  const auto operation = std::ranges::find(kAlike, request.description.operation);
  const std::size_t bytes = std::min(request.bytes(), Arena::kPieceBytes);
  if (operation == kAlike.end() || bytes < kLeastStreamed) return std::nullopt;
  return static_cast<std::size_t>(operation - kAlike.begin()) * kSizes +
         std::bit_width(bytes / kLeastStreamed) - 1;
}

/// Of Whereabouts in a header: a line of its own, for small operations have none.
constexpr std::size_t kPlaceOffset = 64;
static_assert(kDescriptionBytes <= kPlaceOffset);

constexpr int kFewRanks = 16;  // for whose pointers the stack has room

}  // namespace

HostRank::HostRank(const Members& members, Arena arena, transport::Patience patience)
    : members_(members),
      view_{arena, members.group_rank},
      patience_(patience),
      registry_(arena.num_ranks()),
      lent_(members),
      choosers_(members.group_rank == 0 ? Arena::kWays : 0),
      routes_(view_) {}

/// Suspends until the other ranks have arrived; not at all where they have.
struct HostRank::Meet {
  const HostRank& host;

  bool await_ready() const { return host.has_all(); }
  void await_suspend(std::coroutine_handle<>) const {}
  void await_resume() const {}
};

HostRank::Meet HostRank::others() { return Meet{*this}; }

HostRank::Meet HostRank::meet() {
  arrive();
  return others();
}

bool HostRank::wait_for_all(microseconds time) {
  const auto end = Clock::now() + time;
  microseconds left = time;
  for (int i = 1; i < size(); ++i) {
    transport::Signal& progress = view_.arena.progress((rank() + i) % size());
    if (progress.has_reached(steps_)) continue;
    last_waited_ = (rank() + i) % size();
    if (!progress.wait_for(steps_, patience_, left)) return false;
    left = std::chrono::ceil<microseconds>(end - Clock::now());
  }
  return true;
}

bool HostRank::has_all() const {
  for (int i = 1; i < size(); ++i) {
    if (!view_.arena.progress((rank() + i) % size()).has_reached(steps_)) return false;
  }
  return true;
}

std::vector<int> HostRank::late() const {
  std::vector<int> ranks;
  for (int i = 0; i < size(); ++i) {
    if (!view_.arena.progress(i).has_reached(steps_)) ranks.push_back(i);
  }
  return ranks;
}

void HostRank::say(const Request& request) {
  Description description = request.description;
  description.sequence = sequence_;
  description.group_size = static_cast<std::uint32_t>(size());
  description.order = members_.order;
  const auto bytes = to_bytes(description, request.scale);
  std::memcpy(view_.arena.header(rank(), turn()).data(), bytes.data(), bytes.size());
}

void HostRank::say_place(const Whereabouts& place) {
  static_assert(kPlaceOffset + sizeof place <= Arena::kHeaderBytes);
  std::memcpy(view_.arena.header(rank(), turn()).data() + kPlaceOffset, &place, sizeof place);
}

HostRank::Whereabouts HostRank::said_place(int rank) const {
  Whereabouts place;
  const std::span<std::byte> header = view_.arena.header(rank, turn());
  std::memcpy(&place, header.data() + kPlaceOffset, sizeof place);
  return place;
}

bool HostRank::is_same() const {
  const std::span<const std::byte> first = view_.arena.header(0, turn());
  for (int i = 1; i < size(); ++i) {
    if (!is_same_call(view_.arena.header(i, turn()), first)) return false;
  }
  return true;
}

void HostRank::compare() const {
  if (is_same()) return;
  std::map<int, Description> descriptions;
  for (int i = 0; i < size(); ++i) {
    descriptions[i] = parse_description(view_.arena.header(i, turn()).first(kDescriptionBytes));
  }
  check_same(members_, descriptions);
}

// ---- Two halves

void HostRank::begin(const Request& request) {
  is_small(request) ? begin_small(request) : begin_exchange(request);
}

bool HostRank::has_met_quickly() {
  last_waited_ = rank();
  for (int i = 1; i < size(); ++i) {
    transport::Signal& progress = view_.arena.progress((rank() + i) % size());
    if (progress.has_reached(steps_)) continue;
    last_waited_ = (rank() + i) % size();
    if (!progress.wait_for(steps_, patience_, microseconds(0))) return false;
  }
  return is_same();
}

bool HostRank::end_now(const Request& request) {
  if (!begun_) {
    end_small(request);
    return true;
  }
  if (!all_stage_first(*begun_) || begun_->num_pieces() > 1 || begun_->combines_for_all()) {
    return false;
  }
  routes_.note_met();
  begun_->hear(turn());
  staging_.taken_in = timed([&] { begun_->take(0, next_half()); });
  end_piece(next_half());
  ++num_pieces_;
  end_operation();
  begun_.reset();
  return true;
}

Task HostRank::finish(Request request) {
  return begun_ ? finish_exchange(std::move(begun_)) : finish_small(std::move(request));
}

// ---- Small operations

void HostRank::begin_small(const Request& request) {
  say(request);
  const std::span<std::byte> data = request.data.bytes;
  if (!data.empty()) {
    std::memcpy(view_.arena.payload(rank(), turn()).data(), data.data(), data.size());
  }
  owes_steps_ = false;
  arrive();
}

Task HostRank::finish_small(Request request) {
  co_await others();
  compare();
  end_small(request);
}

void HostRank::end_small(const Request& request) {
  if (!request.data.bytes.empty()) {
    std::array<const std::byte*, kFewRanks> few;
    std::vector<const std::byte*> many(size() > kFewRanks ? size() : 0);
    const std::span<const std::byte*> sources =
        many.empty() ? std::span(few).first(size()) : std::span(many);
    for (int i = 0; i < size(); ++i) sources[i] = view_.arena.payload(i, turn()).data();
    const std::vector<double> scales = scales_of(view_, request.description.reduce, turn());
    std::byte* target = request.data.bytes.data();
    kernels::combine({request.data.dtype, request.description.reduce, scales}, sources,
                     {&target, 1}, request.data.count());
  }
  ++sequence_;
}

// ---- All others

std::unique_ptr<Exchange> HostRank::make_exchange(const Request& request) const {
  switch (request.description.operation) {
    case Collective::kAllReduce:
    case Collective::kReduce:
      return size() < kTwoShotRanks || request.data.bytes.size() <= kOneShotBytes
                 ? make_one_shot(view_, request)
                 : make_two_shot(view_, request);
    case Collective::kReduceScatter:
      return make_reduce_scatter(view_, request);
    case Collective::kAllGather:
      return make_all_gather(view_, request);
    case Collective::kBroadcast:
      return make_broadcast(view_, request);
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kAllToAll:
      return make_all_to_all(view_, request);
    case Collective::kBarrier:
      break;
  }
  TRIREME_CHECK(false, "an operation without an exchange");
  return nullptr;
}

HostRank::Whereabouts HostRank::find(const Exchange& exchange) const {
  const std::span<const std::byte> memory = exchange.sharable();
  return {.shared = registry_.find(rank(), memory),
          .address = reinterpret_cast<std::uintptr_t>(memory.data()),
          .is_lent = routes_.route() == Route::kLent};
}

std::vector<std::span<std::byte>> HostRank::shared_memory(const Exchange& exchange) const {
  std::vector<std::span<std::byte>> by_rank;
  for (int i = 0; i < size(); ++i) {
    const Location location = said_place(i).shared;
    if (!location.is_shared()) return {};
    by_rank.push_back(registry_.at(i, location, exchange.sharable_bytes(i)));
  }
  return by_rank;
}

std::vector<std::uint64_t> HostRank::lent_addresses() const {
  std::vector<std::uint64_t> by_rank;
  for (int i = 0; i < size(); ++i) {
    const Whereabouts place = said_place(i);
    if (!place.is_lent) return {};
    by_rank.push_back(place.address);
  }
  return by_rank;
}

void HostRank::copy_own(std::span<const std::byte> own,
                        std::span<const Exchange::Move> moves) const {
  for (const Exchange::Move& move : moves) {
    if (move.from == rank()) copy(own.subspan(move.offset, move.to.size()), move.to);
  }
}

bool HostRank::all_have_read() const {
  for (int i = 0; i < size(); ++i) {
    if (is_read(i) == std::byte{0}) return false;
  }
  return true;
}

bool HostRank::stages_first(const Exchange& exchange) const {
  return said_place(rank()).is_private() && !exchange.hears_first() && exchange.num_pieces() > 0;
}

/// After the first meeting.
bool HostRank::all_stage_first(const Exchange& exchange) const {
  if (!stages_first(exchange)) return false;
  for (int i = 0; i < size(); ++i) {
    if (!said_place(i).is_private()) return false;
  }
  return true;
}

/// The time that it took, where somebody wants to know.
template <typename Part>
std::chrono::nanoseconds HostRank::timed(Part part) const {
  const bool is_wanted = staging_.kind && rank() == 0 && choosers_[*staging_.kind].wants_cost();
  const auto begin = is_wanted ? Clock::now() : Clock::time_point();
  part();
  return is_wanted ? Clock::now() - begin : Clock::duration();
}

void HostRank::stage(Exchange& exchange, std::int64_t piece) {
  const int half = next_half();
  const Way way = staging_.kind ? view_.arena.way(*staging_.kind).load(std::memory_order_relaxed)
                                : Way::kCached;
  staging_.staged_in[half] = timed([&] { exchange.stage(piece, half, way); });
}

/// A whole piece has been staged and taken: the first rank learns from it, for all.
void HostRank::end_piece(int half) {
  if (!staging_.kind || rank() != 0) return;
  Chooser<Way>& chooser = choosers_[*staging_.kind];
  const auto time = staging_.staged_in[half] + staging_.taken_in;
  chooser.end_turn(static_cast<double>(time.count()) / static_cast<double>(staging_.bytes));
  view_.arena.way(*staging_.kind).store(chooser.choice(), std::memory_order_relaxed);
}

void HostRank::end_operation() {
  owes_steps_ = false;
  ++sequence_;
  routes_.end();
}

void HostRank::begin_exchange(const Request& request) {
  staging_ = {.kind = kind_of(request), .bytes = std::min(request.bytes(), Arena::kPieceBytes)};
  begun_ = make_exchange(request);
  routes_.begin(request, lent_.may_read() && begun_->moves());
  say(request);
  say_place(find(*begun_));
  begun_->announce(turn());
  routes_.before_meeting([&] {
    if (stages_first(*begun_)) stage(*begun_, 0);
  });
  owes_steps_ = true;
  arrive();
}

Task HostRank::finish_exchange(std::unique_ptr<Exchange> exchange) {
  co_await others();
  routes_.note_met();
  compare();
  exchange->hear(turn());
  const auto by_rank = shared_memory(*exchange);
  if (!by_rank.empty()) {
    exchange->share(by_rank);
    owes_steps_ = false;
    co_await meet();
    ++sequence_;
    co_return;
  }
  if (const auto addresses = lent_addresses(); !addresses.empty()) {
    const auto moves = *exchange->moves();
    is_read(rank()) = std::byte{lent_.read(moves, addresses)};
    arrive();
    copy_own(exchange->sharable(), moves);  // while others still read
    co_await others();
    if (all_have_read()) {
      end_operation();
      co_return;
    }
    lent_.give_up();  // on all ranks: what one cannot read is staged, now and later
  }
  const std::int64_t num_pieces = exchange->num_pieces();
  if (num_pieces > 0 && !all_stage_first(*exchange)) {
    if (!stages_first(*exchange)) stage(*exchange, 0);
    co_await meet();
  }
  for (std::int64_t piece = 0; piece < num_pieces; ++piece) {
    const int half = next_half();
    ++num_pieces_;
    const bool is_last = piece + 1 == num_pieces;
    if (exchange->combines_for_all()) {
      staging_.taken_in = timed([&] { exchange->combine(piece, half); });
      owes_steps_ = !is_last;
      arrive();
      // While others still combine this one.
      if (!is_last) stage(*exchange, piece + 1);
      co_await others();
      staging_.taken_in += timed([&] { exchange->take(piece, half); });
    } else {
      staging_.taken_in = timed([&] { exchange->take(piece, half); });
      if (!is_last) stage(*exchange, piece + 1);
      owes_steps_ = piece + 2 < num_pieces;
    }
    if (!is_last || num_pieces == 1) end_piece(half);  // the last of several may be shorter
    if (!is_last) co_await meet();
  }
  end_operation();
}

}  // namespace trireme::collectives
