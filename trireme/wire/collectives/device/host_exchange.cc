#include "trireme/wire/collectives/device/host_exchange.h"

#include <vector>

#include "trireme/wire/collectives/network.h"

namespace trireme::collectives {
namespace {

/// With messages of their own, which fail with the group.
Members apart(Members members) {
  constexpr std::uint64_t kExchange = 1;
  const std::uint64_t group = members.id;
  members.id = message_id(group, members.ranks, kExchange);
  if (members.domain) {
    members.domain = members.endpoint.domains().open({.first_tag = Members::first_tag(members.id),
                                                      .ranks = members.ranks,
                                                      .parent = Members::first_tag(group)});
  }
  return members;
}

}  // namespace

HostExchange::HostExchange(const Members& members) : group_(members), members_(apart(members)) {}

void HostExchange::close() {
  if (members_.domain) members_.endpoint.domains().close(Members::first_tag(members_.id));
}

void HostExchange::run(Description description, const std::function<void(Call&)>& body) {
  description.group_size = static_cast<std::uint32_t>(members_.size());
  Call call(members_, description, scratch_);
  try {
    body(call);
    call.retract();
  } catch (Error& error) {
    group_.fail(error.add(call.context()));
    call.drain();
    throw;
  }
}

void HostExchange::all_gather(std::span<std::byte> all) {
  const auto part = static_cast<std::int64_t>(all.size()) / members_.size();
  std::vector<Chunk> parts;
  for (int i = 0; i < members_.size(); ++i) parts.push_back({i * part, (i + 1) * part});
  // Below the numbers of the group's operations.
  run({.sequence = --num_calls_, .operation = Operation::kAllGather, .count = std::ssize(all)},
      [&](Call& call) { network_all_gather(call, all, parts); });
}

void HostExchange::broadcast(std::span<std::byte> data) {
  run({.sequence = --num_calls_, .operation = Operation::kBroadcast, .count = std::ssize(data)},
      [&](Call& call) { network_broadcast(call, data, 0); });
}

void HostExchange::compare(const Description& description) {
  run(description, [](Call& call) { network_barrier(call); });
}

}  // namespace trireme::collectives
