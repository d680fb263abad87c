#include "trireme/wire/bootstrap/regroup.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "trireme/error.h"
#include "trireme/wire/bootstrap/failure.h"
#include "trireme/wire/bootstrap/store_service.h"
#include "trireme/wire/system/byte_form.h"

namespace trireme::transport::internal {
namespace {

constexpr std::uint32_t kMaxMembers = 1U << 20;

std::string wish_text(const RegroupOptions& options) {
  const std::string who =
      options.members.empty() ? "those that call in" : ranks_text(options.members);
  return who + ", at least " + std::to_string(options.at_least);
}

std::vector<int> without(const std::set<int>& ranks, const std::set<int>& others) {
  std::vector<int> result;
  std::ranges::set_difference(ranks, others, std::back_inserter(result));
  return result;
}

}  // namespace

std::string to_bytes(const RegroupCall& call) {
  ByteWriter writer;
  writer.integer(static_cast<std::int32_t>(call.world_size))
      .integer(static_cast<std::int64_t>(call.options.window.count()))
      .integer(static_cast<std::int32_t>(call.options.at_least))
      .integer(static_cast<std::uint32_t>(call.options.members.size()));
  for (const int rank : call.options.members) writer.integer(static_cast<std::int32_t>(rank));
  const std::vector<std::byte> bytes = writer.take();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

RegroupCall parse_regroup_call(std::string_view bytes) {
  ByteReader reader(std::as_bytes(std::span(bytes)));
  RegroupCall call;
  call.world_size = reader.integer<std::int32_t>();
  call.options.window = std::chrono::milliseconds(reader.integer<std::int64_t>());
  call.options.at_least = reader.integer<std::int32_t>();
  const auto count = reader.integer<std::uint32_t>();
  const auto window = call.options.window;
  if (count > kMaxMembers || window.count() < 0 || window > std::chrono::hours(24 * 365)) {
    throw Error(ErrorKind::kCorruptData, "bytes that are no call to regroup");
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    call.options.members.push_back(reader.integer<std::int32_t>());
  }
  reader.finish();
  return call;
}

void Gathering::check_same(int rank, const RegroupCall& other) const {
  RegroupOptions wanted = other.options;
  wanted.window = call.options.window;
  if (wanted == call.options && other.world_size == call.world_size) return;
  throw Error(ErrorKind::kInvalidArgument,
              "the ranks do not agree on who goes on in " + generation + ": rank " +
                  std::to_string(rank) + " wants " + wish_text(wanted) + ", others " +
                  wish_text(call.options) + "; give the same members on all");
}

std::optional<std::vector<int>> Gathering::decide(const std::set<int>& called,
                                                  const std::set<int>& present,
                                                  Deadline now) const {
  const RegroupOptions& options = call.options;
  const std::set<int> wanted(options.members.begin(), options.members.end());
  const std::vector<int> late = without(wanted.empty() ? present : wanted, called);
  for (const int rank : late) {
    if (!present.contains(rank)) throw lost_rank(rank, "it was to go on in " + generation);
  }
  if (!late.empty() && now < deadline) return std::nullopt;
  const bool is_enough = std::ssize(called) >= options.at_least;
  if (is_enough && (late.empty() || wanted.empty())) {
    return std::vector<int>(called.begin(), called.end());
  }
  Error error(ErrorKind::kTimeout,
              std::to_string(called.size()) + " ranks have called in within " +
                  std::to_string(options.window.count()) + " ms to go on in " + generation +
                  ", wanted are " + wish_text(options) +
                  (late.empty() ? "; the others have ended" : "; late: " + ranks_text(late)));
  if (!late.empty()) error.add({.peer = late.front()});
  throw error;
}

Error late_for_generation(int rank, const std::string& generation,
                          const std::vector<int>& members) {
  Error error(ErrorKind::kTimeout, generation + " has begun without rank " + std::to_string(rank) +
                                       ": it called in too late; its members were " +
                                       ranks_text(members) +
                                       ". End this process, or wait longer in `regroup`");
  return error.add({.rank = rank});
}

}  // namespace trireme::transport::internal

// How the store begins a new generation.

namespace trireme::transport {
namespace {

using Clock = std::chrono::steady_clock;
using Client = internal::StoreClientState;

bool is_calling(const Client& client, const std::string& generation) {
  return client.regrouping && client.regrouping->key == generation;
}

}  // namespace

void StoreServer::Service::regroup(Client& client, const StoreMessage& message) {
  const internal::RegroupCall call = internal::parse_regroup_call(message.value);
  const auto begun = generations_.find(message.key);
  if (begun != generations_.end()) {
    return answer(client, message,
                  internal::late_for_generation(client.seat.rank, message.key, begun->second));
  }
  const auto [place, is_first] = gatherings_.try_emplace(
      message.key, internal::Gathering{message.key, call, Clock::now() + call.options.window});
  client.regrouping = message;
  try {
    place->second.check_same(client.seat.rank, call);
  } catch (const Error& difference) {
    fail_gathering(message.key, difference);
  }
}

/// Ends those that can be decided: all have called in, or they cannot any more, or it is time.
void StoreServer::Service::settle() {
  const auto gatherings = gatherings_;  // some will be erased
  for (const auto& [generation, gathering] : gatherings) settle(gathering);
  end_broken();
}

void StoreServer::Service::settle(const internal::Gathering& gathering) {
  std::set<int> called;
  std::string before;
  for (const auto& [id, client] : clients_) {
    if (!is_calling(client, gathering.generation)) continue;
    called.insert(client.seat.rank);
    before = client.seat.generation;
  }
  std::set<int> present;
  for (const auto& [id, client] : clients_) {
    const bool is_member = client.is_rank() && client.seat.generation == before &&
                           client.seat.rank < gathering.call.world_size;
    if (is_member && !client.has_said_goodbye) present.insert(client.seat.rank);
  }
  try {
    const auto members = gathering.decide(called, present, Clock::now());
    if (members) begin_generation(gathering.generation, *members);
  } catch (const Error& error) {
    fail_gathering(gathering.generation, error);
  }
}

void StoreServer::Service::begin_generation(const std::string& name,
                                            const std::vector<int>& members) {
  generations_[name] = members;
  std::vector<std::string> texts;
  for (const int rank : members) texts.push_back(std::to_string(rank));
  end_gathering(name, [&](Client& caller, const StoreMessage& call) {
    const auto place = std::ranges::lower_bound(members, caller.seat.rank);
    caller.seat = {name, static_cast<int>(place - members.begin())};
    seats_[*caller.process] = caller.seat;
    answer(caller, call, pack(texts));
  });
}

void StoreServer::Service::fail_gathering(const std::string& name, const Error& error) {
  end_gathering(name,
                [&](Client& caller, const StoreMessage& call) { answer(caller, call, error); });
}

/// tell   answers a caller.
void StoreServer::Service::end_gathering(
    const std::string& name, const std::function<void(Client&, const StoreMessage&)>& tell) {
  gatherings_.erase(name);
  for (auto& [id, client] : clients_) {
    if (!is_calling(client, name)) continue;
    attempt(client, [&, id = id, &caller = client] {
      tell(caller, *std::exchange(caller.regrouping, std::nullopt));
      update_interest(id, caller);
    });
  }
}

}  // namespace trireme::transport
