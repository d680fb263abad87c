#include "trireme/plan/simulate/transfers.h"

#include <algorithm>
#include <utility>

#include "trireme/plan/schedule/message_limits.h"

namespace trireme::simulate {

Transfers::Transfers(const schedule::StepProgram& program, const topology::Topology& topology,
                     const std::vector<int>& played_by, NumberQueue& ready)
    : program_(program),
      ready_(ready),
      channels_(program.channels.size()),
      groups_(program.groups.size()) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const int rank : program.groups[g].ranks) ++groups_[g].num_played[played_by[rank]];
  }
  if (topology.shared_links.empty()) return;
  loads_ = link_loads(program, topology);
  links_.emplace(loads_.bytes_per_us, static_cast<int>(channels_.size() + groups_.size()));
}

bool Transfers::has_room(int channel) const {
  const int limit = program_.channels[channel].limit;
  const auto& [posted, arrived, taken] = channels_[channel];
  const std::int64_t room = std::int64_t{limit} + schedule::kReceivedAhead;
  return limit == 0 || std::cmp_less(posted.size() - taken.size(), room);
}

void Transfers::send(int channel, const Price& price, double now) {
  auto& [posted, arrived, taken] = channels_[channel];
  posted.push_back(now);
  if (links_ && !loads_.channels[channel].empty()) {
    return transfer(channel, loads_.channels[channel], price, now);
  }
  const double begin = arrived.empty() ? now : std::max(now, arrived.back());
  arrived.push_back(begin + price.delay_us);
  ready_.add(program_.channels[channel].to_rank);
}

double Transfers::message_us(int channel) const {
  const auto& [posted, arrived, taken] = channels_[channel];
  return taken.size() == arrived.size() ? kNever : arrived[taken.size()];
}

void Transfers::take(int channel, double now) {
  channels_[channel].taken_us.push_back(now);
  ready_.add(program_.channels[channel].from_rank);  // It may have room now.
}

int Transfers::join(int rank, int group, const Price& price, double now) {
  GroupState& state = groups_[group];
  const int index = state.num_joined[rank]++;
  if (static_cast<std::size_t>(index) == state.collectives.size()) state.collectives.push_back({});
  Collective& collective = state.collectives[index];
  collective.num_present += state.num_played.at(rank);
  if (collective.num_present != static_cast<int>(program_.groups[group].ranks.size())) return index;
  if (links_ && !loads_.groups[group].empty()) {
    transfer(static_cast<int>(channels_.size()) + group, loads_.groups[group], price, now);
    return index;
  }
  const double before = index == 0 ? now : state.collectives[index - 1].done_us;
  collective.done_us = std::max(now, before) + price.delay_us;
  for (const auto& [other, num] : state.num_played) ready_.add(other);
  return index;
}

void Transfers::transfer(int queue, const std::vector<SharedLinks::Load>& loads, const Price& price,
                         double now) {
  SharedLinks::Transfer transfer{.alone_us = price.delay_us, .loads = loads};
  // What has no bytes leaves its links to others, but keeps its place among transfers that have some.
  constexpr double kNothing = 1e-9;
  const double bytes = std::max(kNothing, price.bytes);
  for (SharedLinks::Load& load : transfer.loads) load.bytes *= bytes;
  links_->add(queue, std::move(transfer), now);
}

void Transfers::end_transfers(double now) {
  for (const int queue : links_->take_done(now)) {
    const int num_channels = static_cast<int>(channels_.size());
    if (queue < num_channels) {
      channels_[queue].arrived_us.push_back(now);
      ready_.add(program_.channels[queue].to_rank);
      continue;
    }
    GroupState& state = groups_[queue - num_channels];
    state.collectives[state.num_transferred++].done_us = now;
    for (const auto& [other, num] : state.num_played) ready_.add(other);
  }
}

}  // namespace trireme::simulate
