#include "trireme/wire/collectives/refusals.h"

#include <cstring>
#include <tuple>

namespace trireme::collectives {
namespace {

using transport::Envelope;

/// The sequence, and as much of the problem as there is room for.
Envelope note_of(std::int64_t sequence, std::string problem) {
  Envelope note{};
  constexpr std::size_t kRoom = std::tuple_size_v<Envelope> - sizeof sequence;
  if (problem.size() > kRoom) problem = problem.substr(0, kRoom - 3) + "...";
  std::memcpy(note.data(), &sequence, sizeof sequence);
  std::memcpy(note.data() + sizeof sequence, problem.data(), problem.size());
  return note;
}

void tell_all(const Members& members, const Envelope& note) {
  for (const int rank : members.ranks) {
    if (rank == members.endpoint.rank()) continue;
    members.endpoint.notes().tell(rank, members.tag(Use::kRefusal), note);
  }
}

/// What a rank has refused in that operation; nothing where it has not.
std::optional<std::string> refusal_of(const Members& members, int rank, std::int64_t sequence) {
  const auto note = members.endpoint.notes().heard(rank, members.tag(Use::kRefusal));
  if (!note || *note == Envelope{}) return std::nullopt;
  std::int64_t refused = 0;
  std::memcpy(&refused, note->data(), sizeof refused);
  if (refused != sequence) return std::nullopt;
  const char* text = reinterpret_cast<const char*>(note->data()) + sizeof refused;
  return std::string(text, ::strnlen(text, note->size() - sizeof refused));
}

}  // namespace

void tell_refusal(const Members& members, std::int64_t sequence, const std::string& problem) {
  tell_all(members, note_of(sequence, problem));
}

void retract_refusal(const Members& members) { tell_all(members, {}); }

void RefusalWatch::check(const Members& members, std::span<const int> awaited,
                         std::int64_t sequence) {
  for (const int rank : awaited) {
    const auto problem = refusal_of(members, rank, sequence);
    if (!problem) continue;
    const auto now = std::chrono::steady_clock::now();
    if (!since_) since_ = now;
    if (now < *since_ + kPatience) return;
    Error error(ErrorKind::kInvalidArgument,
                "rank " + std::to_string(rank) +
                    " has refused this operation, and makes no other: " + *problem);
    throw Error(error.add({.peer = rank}));
  }
  since_.reset();
}

}  // namespace trireme::collectives
