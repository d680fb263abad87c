#include "trireme/wire/collectives/members.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

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

namespace {

using transport::Envelope;
using transport::Tag;

// One note for each group that two ranks share, in the order in which the sender has made them:
// beside those of operations, whose tags are hashes.
constexpr Tag kDefinitions = Tag{1} << 63 | Tag{1} << 61;
constexpr std::uint64_t kMostGroups = std::uint64_t{1} << 32;

/// For the peer; and for this rank itself, which keeps what it has told.
Tag told_tag(std::uint64_t index) { return kDefinitions | index; }
Tag own_tag(int peer, std::uint64_t index) {
  return kDefinitions | static_cast<Tag>(peer + 1) << 33 | index;
}

/// The id of its messages, then as much of name and ranks as there is room for.
Envelope definition_of(const Members& members) {
  std::string text = "'" + members.name.substr(0, 16) + "' of ranks";
  for (const int rank : members.ranks) text += " " + std::to_string(rank);
  Envelope definition{};
  std::memcpy(definition.data(), &members.id, sizeof members.id);
  const std::size_t room = definition.size() - sizeof members.id;
  if (text.size() > room) text = text.substr(0, room - 3) + "...";
  std::memcpy(definition.data() + sizeof members.id, text.data(), text.size());
  return definition;
}

std::string text_of(const Envelope& definition) {
  const char* begin = reinterpret_cast<const char*>(definition.data()) + sizeof(std::uint64_t);
  return {begin, ::strnlen(begin, definition.size() - sizeof(std::uint64_t))};
}

template <typename TagOf>
std::vector<Envelope> heard_from(const transport::Notes& notes, int rank, TagOf tag_of) {
  std::vector<Envelope> definitions;
  for (std::uint64_t index = 0;; ++index) {
    const std::optional<Envelope> heard = notes.heard(rank, tag_of(index));
    if (!heard) return definitions;
    definitions.push_back(*heard);
  }
}

/// By the id: names are for people.
bool contains(const std::vector<Envelope>& definitions, const Envelope& one) {
  return std::ranges::any_of(definitions, [&one](const Envelope& other) {
    return std::memcmp(other.data(), one.data(), sizeof(std::uint64_t)) == 0;
  });
}

}  // namespace

void tell_definition(const Members& members) {
  const Envelope definition = definition_of(members);
  transport::Notes& notes = members.endpoint.notes();
  const int own = members.endpoint.rank();
  for (const int peer : members.ranks) {
    if (peer == own) continue;
    const std::uint64_t index = members.endpoint.count_use(own_tag(peer, 0));
    if (index >= kMostGroups) return;
    notes.tell(own, own_tag(peer, index), definition);
    notes.tell(peer, told_tag(index), definition);
  }
}

void check_definitions(const Members& members, std::span<const int> awaited) {
  const transport::Notes& notes = members.endpoint.notes();
  const int own = members.endpoint.rank();
  const Envelope mine = definition_of(members);
  for (const int peer : awaited) {
    if (peer == own) continue;
    const auto theirs = heard_from(notes, peer, told_tag);
    if (contains(theirs, mine)) continue;
    const auto told = heard_from(notes, own, [peer](auto index) { return own_tag(peer, index); });
    for (const Envelope& other : theirs) {
      if (contains(told, other)) continue;
      Error error(ErrorKind::kInvalidArgument,
                  "ranks make different groups: rank " + std::to_string(own) + " waits in " +
                      text_of(mine) + ", rank " + std::to_string(peer) + " has made " +
                      text_of(other) +
                      " instead; all make the groups that they share in one order, with the same "
                      "ids and ranks");
      throw Error(error.add({.peer = peer}));
    }
  }
}

}  // namespace trireme::collectives
