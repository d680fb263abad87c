#include "trireme/wire/collectives/device/device_backend.h"

#include <utility>

#include "trireme/base/cuda/stream.h"
#include "trireme/wire/collectives/device/connect.h"
#include "trireme/wire/collectives/device/device_queue.h"

namespace trireme::collectives {
namespace {

DeviceParts parts_for(const Members& members, const DeviceChoice& choice) {
  if (choice.caller != nullptr && choice.caller->device() != choice.device) {
    throw Error(ErrorKind::kInvalidArgument,
                "group " + members.name + " is on " + to_text(choice.device) +
                    ", the stream of its callers on " + to_text(choice.caller->device()));
  }
  return {.stream = make_stream(choice.device),
          .make_event = [device = choice.device] { return make_event(device); },
          .connect =
              [members, device = choice.device](HostExchange& exchange) {
                const cuda::CurrentDevice current(device);
                return connect_engines(members, device, exchange);
              },
          .caller = choice.caller,
          .checks_calls = choice.checks_calls};
}

}  // namespace

DeviceBackend::DeviceBackend(const Members& members, const DeviceChoice& choice)
    : DeviceBackend(members, parts_for(members, choice)) {}

DeviceBackend::DeviceBackend(const Members& members, DeviceParts parts)
    : device_(parts.stream->device()),
      queue_(std::make_shared<DeviceQueue>(members, std::move(parts))) {}

DeviceBackend::~DeviceBackend() { queue_->close(); }

transport::WorkPtr DeviceBackend::submit(Request request) {
  return queue_->submit(std::move(request));
}

std::span<std::byte> DeviceBackend::allocate(std::size_t bytes, std::chrono::milliseconds) {
  return allocated_.emplace_back(device_.index, bytes).bytes();
}

std::vector<int> DeviceBackend::missing() const { return queue_->missing(); }

const Event* end_of(const transport::Work& work) {
  const auto* own = dynamic_cast<const DeviceWork*>(&work);
  return own == nullptr ? nullptr : own->end();
}

}  // namespace trireme::collectives
