#include "trireme/wire/collectives/device/host_exchange.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
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

void HostExchange::run(const Request& request) {
  run(request.description, [&](Call& call) { run_over_network(call, request, schedules_); });
}

void HostExchange::all_gather(std::span<std::byte> all) {
  const auto part = static_cast<std::int64_t>(all.size()) / members_.size();
  std::vector<Chunk> parts;
  for (int i = 0; i < members_.size(); ++i) parts.push_back({i * part, (i + 1) * part});
  // Below the numbers of the group's operations.
  run({.description = {.sequence = --num_calls_,
                       .operation = Collective::kAllGather,
                       .count = std::ssize(all)},
       .data = {all, Dtype::kU8},
       .parts = std::move(parts)});
}

void HostExchange::broadcast(std::span<std::byte> data) {
  run({.description = {.sequence = --num_calls_,
                       .operation = Collective::kBroadcast,
                       .count = std::ssize(data)},
       .data = {data, Dtype::kU8}});
}

void HostExchange::compare(const Description& description) {
  run(description, [this](Call& call) { wait_for_all(call, schedules_); });
}

static_assert(std::is_trivially_copyable_v<Card>);

std::uint64_t process_id() {
  // Containers count their processes from 1 each.
  struct stat space{};
  const bool is_known = ::stat("/proc/self/ns/pid", &space) == 0;
  return mixed(mixed(1, ::getpid()), is_known ? static_cast<std::int64_t>(space.st_ino) : 0);
}

std::vector<Card> exchange_cards(const Members& members, HostExchange& exchange, const Card& own) {
  std::vector<Card> cards(members.ranks.size());
  cards[members.group_rank] = own;
  exchange.all_gather(std::as_writable_bytes(std::span(cards)));
  return cards;
}

bool all_agree(const Members& members, HostExchange& exchange, bool own) {
  std::vector<std::byte> votes(members.ranks.size());
  votes[members.group_rank] = static_cast<std::byte>(own);
  exchange.all_gather(votes);
  return std::ranges::all_of(votes, [](std::byte vote) { return vote != std::byte{0}; });
}

std::optional<Sharing> find_sharing(const std::vector<Card>& cards) {
  for (std::size_t i = 0; i < cards.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (cards[i].device == cards[j].device) {
        return Sharing{static_cast<int>(j), static_cast<int>(i)};
      }
    }
  }
  return std::nullopt;
}

void Agreement::look(const Description& description, double scale, Time now) {
  notes_.tell(to_bytes(description, scale));
  std::map<int, Description> heard{{members_.group_rank, description}};
  bool differs = false;
  for (int peer = 0; peer < members_.size(); ++peer) {
    if (peer == members_.group_rank) continue;
    const auto told = notes_.told_by(members_.ranks[peer]);
    if (!told || told->sequence != description.sequence) continue;
    differs = differs || *told != description;
    heard.emplace(peer, *told);
  }
  if (!differs) return;
  if (!differs_since_) differs_since_ = now;
  const bool is_over = now >= *differs_since_ + notes_.resolution();
  if (std::ssize(heard) == members_.size() || is_over) check_same(members_, heard);
}

void Agreement::retract() {
  differs_since_.reset();
  notes_.retract();
}

std::vector<int> Agreement::missing(const Description& description) const {
  std::vector<int> silent;
  std::vector<int> all;
  for (int peer = 0; peer < members_.size(); ++peer) {
    if (peer == members_.group_rank) continue;
    all.push_back(members_.ranks[peer]);
    const auto told = notes_.told_by(members_.ranks[peer]);
    if (!told || told->sequence < description.sequence) silent.push_back(members_.ranks[peer]);
  }
  std::ranges::sort(all);
  std::ranges::sort(silent);
  return silent.empty() ? all : silent;
}

}  // namespace trireme::collectives
