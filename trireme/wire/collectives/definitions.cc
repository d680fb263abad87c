#include "trireme/wire/collectives/definitions.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace trireme::collectives {
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
