#include "trireme/wire/collectives/device/agreement.h"

#include <algorithm>
#include <utility>

namespace trireme::collectives {

/// What a member has told that it waits in.
std::optional<Description> Agreement::told_by(int peer) const {
  const auto note =
      members_.endpoint.notes().heard(members_.ranks[peer], members_.tag(Use::kOperation));
  if (!note || *note == transport::Envelope{}) return std::nullopt;
  return parse_description(*note);
}

void Agreement::tell_all(const transport::Envelope& note) const {
  for (int peer = 0; peer < members_.size(); ++peer) {
    if (peer == members_.group_rank) continue;
    members_.endpoint.notes().tell(members_.ranks[peer], members_.tag(Use::kOperation), note);
  }
}

void Agreement::look(const Description& description, double scale, Time now) {
  // Once a difference is known: how long to wait until all have told, so that all ranks name the
  // same two. Lower ranks lose patience first: then they are the only ones to speak.
  constexpr std::chrono::milliseconds kResolution{400};
  constexpr std::chrono::milliseconds kStagger{20};
  if (!std::exchange(has_told_, true)) tell_all(to_bytes(description, scale));
  std::map<int, Description> heard{{members_.group_rank, description}};
  bool differs = false;
  for (int peer = 0; peer < members_.size(); ++peer) {
    if (peer == members_.group_rank) continue;
    const auto told = told_by(peer);
    if (!told || told->sequence != description.sequence) continue;
    differs = differs || *told != description;
    heard.emplace(peer, *told);
  }
  if (!differs) return;
  if (!differs_since_) differs_since_ = now;
  const auto limit = *differs_since_ + kResolution + kStagger * std::min(members_.group_rank, 25);
  if (std::ssize(heard) == members_.size() || now >= limit) check_same(members_, heard);
}

void Agreement::retract() {
  differs_since_.reset();
  if (std::exchange(has_told_, false)) tell_all({});
}

std::vector<int> Agreement::missing(const Description& description) const {
  std::vector<int> silent;
  std::vector<int> all;
  for (int peer = 0; peer < members_.size(); ++peer) {
    if (peer == members_.group_rank) continue;
    all.push_back(members_.ranks[peer]);
    const auto told = told_by(peer);
    if (!told || told->sequence < description.sequence) silent.push_back(members_.ranks[peer]);
  }
  std::ranges::sort(all);
  std::ranges::sort(silent);
  return silent.empty() ? all : silent;
}

}  // namespace trireme::collectives
