#include "trireme/wire/collectives/host/host_backend.h"

#include <utility>

#include "trireme/wire/collectives/host/host_queue.h"

namespace trireme::collectives {

HostBackend::HostBackend(const Members& members) : queue_(std::make_shared<HostQueue>(members)) {}

HostBackend::~HostBackend() { queue_->close(); }

transport::WorkPtr HostBackend::submit(Request request) {
  return queue_->submit(std::move(request));
}

std::span<std::byte> HostBackend::allocate(std::size_t bytes, std::chrono::milliseconds deadline) {
  return queue_->allocate(bytes, deadline);
}

std::vector<int> HostBackend::missing() const { return queue_->missing(); }

}  // namespace trireme::collectives
