#include "trireme/wire/collectives/waits.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>

namespace trireme::collectives {
namespace {

using transport::Envelope;

constexpr transport::Tag kWaits = transport::Tag{1} << 63 | transport::Tag{1} << 60;  // of no group

/// The id of the group's messages, then `all_reduce of group 'data'`.
Envelope note_of(const Members& members, std::string_view operation) {
  Envelope note{};
  const std::string text =
      (std::string(operation) + " of group '" + members.name.substr(0, 12) + "'")
          .substr(0, note.size() - sizeof members.id);
  std::memcpy(note.data(), &members.id, sizeof members.id);
  std::memcpy(note.data() + sizeof members.id, text.data(), text.size());
  return note;
}

/// What `rank` waits for this one in; nothing where it does not, or in the same group.
std::optional<std::string> wait_of(const Members& members, int rank) {
  const auto note = members.endpoint.notes().heard(rank, kWaits);
  if (!note || *note == Envelope{}) return std::nullopt;
  if (std::memcmp(note->data(), &members.id, sizeof members.id) == 0) return std::nullopt;
  const char* text = reinterpret_cast<const char*>(note->data()) + sizeof members.id;
  return std::string(text, ::strnlen(text, note->size() - sizeof members.id));
}

}  // namespace

void OtherWaits::tell(const Members& members, std::string_view operation,
                      std::span<const int> awaited) {
  for (const int rank : awaited) {
    if (rank == members.endpoint.rank() || std::ranges::find(told_, rank) != told_.end()) continue;
    members.endpoint.notes().tell(rank, kWaits, note_of(members, operation));
    told_.push_back(rank);
  }
}

void OtherWaits::retract(const Members& members) {
  for (const int rank : told_) members.endpoint.notes().tell(rank, kWaits, {});
  told_.clear();
}

Error late_error_with_waits(const Members& members, std::span<const int> awaited,
                            std::chrono::milliseconds deadline) {
  const Error late = late_error({awaited.begin(), awaited.end()}, deadline);
  for (const int rank : awaited) {
    const auto other = wait_of(members, rank);
    if (!other) continue;
    Error error(late.kind(), late.message() + " Rank " + std::to_string(rank) +
                                 " waits for this rank in " + *other +
                                 " meanwhile: call the operations of two groups in one order");
    return Error(error.add(late.context()));
  }
  return late;
}

namespace {

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
