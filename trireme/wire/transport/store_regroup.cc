// How the store begins a new generation.

#include <algorithm>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/wire/transport/store_service.h"

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
