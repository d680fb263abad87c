#include "trireme/wire/collectives/schedule/two_level_steps.h"

#include <utility>

namespace trireme::collectives {

TwoLevelSteps::TwoLevelSteps(const CollectiveSetting& setting, std::vector<Chunk> parts)
    : setting_(setting),
      place_(setting),
      parts_(std::move(parts)),
      rails_(place_.other_hosts()),
      neighbours_(place_.other_locals()) {}

void TwoLevelSteps::leave_out(int root) {
  const int host = root / place_.ranks_per_host;
  std::erase(rails_, host);
  if (place_.host != host) return;
  rails_.clear();
  std::erase(neighbours_, root % place_.ranks_per_host);
}

Range TwoLevelSteps::part(int host, int local) const {
  return internal::data_range(parts_[place_.rank_at(host, local)]);
}

std::vector<Range> TwoLevelSteps::segments(const Range& range) const {
  return segments_of(range, setting_.segment);
}

/// What leaves the host first.
std::vector<int> TwoLevelSteps::hosts_own_last() const {
  std::vector<int> result = rails_;
  result.push_back(place_.host);
  return result;
}

/// To those of the host that own them, or pass them on.
void TwoLevelSteps::give_elements() {
  for (const int host : hosts_own_last()) {
    for (const int local : neighbours_) {
      for (const Range& segment : segments(part(host, local))) {
        builder_.send(place_.rank_at(place_.host, local), segment);
      }
    }
  }
}

/// The partial result, over the ranks of this host, of what `host` owns on the rail.
Range TwoLevelSteps::combine_inside(int host) {
  const Range range = part(host, place_.local);
  std::vector<Range> slots(place_.ranks_per_host, range);
  for (const int local : neighbours_) {
    slots[local] = builder_.scratch(range.size());
    for (const Range& segment : segments(slots[local])) {
      builder_.recv(place_.rank_at(place_.host, local), segment);
    }
  }
  const Range partial = builder_.partial(range.size());
  for (const Range& segment : segments(partial)) {
    const std::int64_t begin = segment.begin - partial.begin;
    std::vector<Range> sources;
    for (const Range& slot : slots) {
      sources.push_back(part_of(slot, begin, begin + segment.size()));
    }
    builder_.reduce(segment, sources, place_.rank_at(place_.host, 0));
  }
  return partial;
}

void TwoLevelSteps::combine_own(const std::function<Range(const Range& segment)>& target,
                                const std::function<void(const Range& result)>& next) {
  give_elements();
  const Range own = part(place_.host, place_.local);
  std::vector<Range> partials(place_.num_hosts);
  for (const int host : rails_) {
    partials[host] = builder_.partial(own.size());
    for (const Range& segment : segments(partials[host])) {
      builder_.recv(place_.rank_at(host, place_.local), segment);
    }
  }
  for (const int host : hosts_own_last()) {
    const Range partial = combine_inside(host);
    if (host == place_.host) {
      partials[host] = partial;
      continue;
    }
    for (const Range& segment : segments(partial)) {
      builder_.send(place_.rank_at(host, place_.local), segment);
    }
  }
  for (const Range& segment : segments(own)) {
    const std::int64_t begin = segment.begin - own.begin;
    std::vector<Range> sources;
    for (const Range& partial : partials) {
      sources.push_back(part_of(partial, begin, begin + segment.size()));
    }
    const Range result = target(segment);
    builder_.reduce(result, sources);
    next(result);
  }
}

void TwoLevelSteps::give_inside(const Range& segment) {
  for (const int local : neighbours_) builder_.send(place_.rank_at(place_.host, local), segment);
}

void TwoLevelSteps::give(const Range& segment) {
  for (const int host : rails_) builder_.send(place_.rank_at(host, place_.local), segment);
  give_inside(segment);
}

void TwoLevelSteps::give_own() {
  std::vector<ScheduleBuilder::Parcel> parcels;
  for (const int host : rails_) {
    parcels.push_back({place_.rank_at(host, place_.local), own_segments()});
  }
  builder_.send_in_turn(parcels);
  for (const Range& segment : own_segments()) give_inside(segment);
}

void TwoLevelSteps::collect() {
  for (const int host : rails_) {
    for (const Range& segment : segments(part(host, place_.local))) {
      builder_.recv(place_.rank_at(host, place_.local), segment);
      give_inside(segment);
    }
  }
  for (const int local : neighbours_) {  // in the order in which they give
    const int peer = place_.rank_at(place_.host, local);
    for (const Range& segment : segments(part(place_.host, local))) builder_.recv(peer, segment);
    for (const int host : rails_) {
      for (const Range& segment : segments(part(host, local))) builder_.recv(peer, segment);
    }
  }
}

}  // namespace trireme::collectives
