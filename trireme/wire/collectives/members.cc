#include "trireme/wire/collectives/members.h"

#include <algorithm>

#include "trireme/wire/endpoint/watch.h"

namespace trireme::collectives {

void Members::fail(const Error& error) const {
  if (!domain || error.kind() == ErrorKind::kPeerLost) return endpoint.poison(error);
  endpoint.domains().fail(first_tag(id), error);
}

std::uint64_t mixed(std::uint64_t hash, std::int64_t value) {
  hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

std::uint64_t message_id(std::uint64_t id, const std::vector<int>& ranks, std::uint64_t use) {
  std::uint64_t hash =
      mixed(mixed(1, static_cast<std::int64_t>(id)), static_cast<std::int64_t>(use));
  for (const int rank : ranks) hash = mixed(hash, rank);
  return hash >> 4;
}

Error late_error(const std::vector<int>& ranks, std::chrono::milliseconds deadline) {
  Error error(ErrorKind::kTimeout, "waited " + std::to_string(deadline.count()) + " ms for " +
                                       transport::ranks_text(ranks) +
                                       "; have they failed, or do they call something else?");
  if (!ranks.empty()) error.add({.peer = ranks.front()});
  return error;
}

namespace {

/// World ranks by the hash that they gave.
using ByHash = std::map<std::optional<std::uint64_t>, std::vector<int>>;

std::string hashes_text(const ByHash& by_hash) {
  std::string text;
  for (const auto& [hash, ranks] : by_hash) {
    text += (text.empty() ? "" : "; ") + transport::ranks_text(ranks) + ": " +
            (hash ? hash_text(*hash) : "none");
  }
  return text;
}

/// The ranks make the same call, and their hashes differ. Who has not been heard may agree with
/// any.
[[noreturn]] void refuse_hashes(const Members& members, const ByHash& by_hash,
                                const Description& call) {
  const auto most =
      std::ranges::max_element(by_hash, {}, [](const auto& entry) { return entry.second.size(); });
  std::vector<int> others;
  std::size_t num_next = 0;  // ranks that agree on another hash
  for (const auto& [hash, ranks] : by_hash) {
    if (hash == most->first) continue;
    num_next = std::max(num_next, ranks.size());
    others.insert(others.end(), ranks.begin(), ranks.end());
  }
  const std::size_t num_silent = members.ranks.size() - others.size() - most->second.size();
  const bool is_tie = num_next + num_silent >= most->second.size();
  std::ranges::sort(others);
  Description plain = call;
  plain.hash.reset();
  const bool is_missing = by_hash.contains(std::nullopt);
  const std::string who = is_tie ? "the ranks differ, and most agree on none"
                                 : transport::ranks_text(others) +
                                       (others.size() == 1 ? " differs" : " differ") +
                                       " from the others";
  Error error(is_missing ? ErrorKind::kInvalidArgument : ErrorKind::kCorruptData,
              "group " + members.name + ": " + who + " in the hash of their state before " +
                  to_text(plain) + " (" + hashes_text(by_hash) + ")");
  if (!is_tie) error.add({.peer = others.front()});
  throw error;
}

}  // namespace

void check_same(const Members& members, const std::map<int, Description>& descriptions) {
  const auto& [first, expected] = *descriptions.begin();
  for (const auto& [rank, description] : descriptions) {
    Description same = description;
    same.hash = expected.hash;
    if (same == expected) continue;
    throw Error(ErrorKind::kInvalidArgument, "group " + members.name + ": " +
                                                 difference_text(members.ranks[first], expected,
                                                                 members.ranks[rank], description));
  }
  ByHash by_hash;
  for (const auto& [rank, description] : descriptions) {
    by_hash[description.hash].push_back(members.ranks[rank]);
  }
  if (by_hash.size() > 1) refuse_hashes(members, by_hash, expected);
}

}  // namespace trireme::collectives
