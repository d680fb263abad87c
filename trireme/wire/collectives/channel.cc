#include "trireme/wire/collectives/channel.h"

#include <string>

namespace trireme::collectives {
namespace {

constexpr int kFrom = 0;  // group ranks
constexpr int kTo = 1;

std::string name_of(int from, int to) {
  return "channel " + std::to_string(from) + " to " + std::to_string(to);
}

}  // namespace

DeviceChannel::DeviceChannel(transport::Endpoint& endpoint, int from, int to,
                             const DeviceChannelOptions& options)
    : group_(endpoint, {from, to},
             {.name = name_of(from, to),
              .id = options.id,
              .deadline = options.deadline,
              .device = options.device,
              .stream = options.stream}) {
  // Where engines connect in the first message, ranks whose first ones differ would wait in a ring.
  group_.barrier()->wait_for(std::chrono::milliseconds::max());
}

int DeviceChannel::peer() const { return group_.ranks()[kTo - group_.group_rank()]; }

void DeviceChannel::check_end(int group_rank, const char* call) const {
  if (group_.group_rank() == group_rank) return;
  throw Error(ErrorKind::kInvalidArgument, std::string(call) + " at the wrong end of " +
                                               name_of(group_.ranks()[kFrom], group_.ranks()[kTo]) +
                                               ", of which this is rank " +
                                               std::to_string(group_.ranks()[group_.group_rank()]) +
                                               "; a channel has one direction");
}

transport::WorkPtr DeviceChannel::send(std::span<const std::byte> data) {
  check_end(kFrom, "send");
  // A broadcast only reads its root's data.
  return group_.broadcast({const_cast<std::byte*>(data.data()), data.size()}, kFrom);
}

transport::WorkPtr DeviceChannel::recv(std::span<std::byte> data) {
  check_end(kTo, "recv");
  return group_.broadcast(data, kFrom);
}

}  // namespace trireme::collectives
