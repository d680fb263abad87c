#include <algorithm>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/wire/collectives/host/hand_over.h"
#include "trireme/wire/collectives/host/host_queue.h"

namespace trireme::collectives {

using std::chrono::milliseconds;

/// Takes the arena that the leader has made.
bool HostBackend::Queue::attach(Operation& operation, Time until) {
  while (true) {
    const Time now = Clock::now();
    const auto left = std::max(std::min({until, *operation.deadline, now + kLook}) - now, {});
    auto memory = take(members_, Use::kArena, std::chrono::ceil<milliseconds>(left));
    if (memory) {
      memory_ = std::move(*memory);
      break;
    }
    check(operation, {0});
    if (Clock::now() >= until) return false;
  }
  if (memory_.bytes().size() != Arena::bytes_for(members_.size())) {
    throw Error(ErrorKind::kInvalidArgument,
                "group rank 0 of '" + members_.name + "' has made it for another number of ranks");
  }
  host_.emplace(members_, Arena(memory_.bytes(), members_.size()), patience_);
  return true;
}

// ---- Shared memory for buffers

std::span<std::byte> HostBackend::Queue::allocate(std::size_t bytes) {
  // After the operations before it, as one of its own: nobody drives meanwhile.
  const auto operation = std::make_shared<Operation>(shared_from_this(), "allocate", -1);
  Lock lock(mutex_);
  while (!operations_.empty() || is_driven_) {
    if (!is_driven_) {
      drive(lock, nullptr, Time::max());
    } else {
      changed_.wait(lock);
    }
  }
  if (failure_) throw Error(*failure_);
  is_driven_ = true;
  lock.unlock();
  std::optional<Error> error;
  try {
    operation->deadline = after(Clock::now(), members_.deadline);
    if (!host_) attach(*operation, Time::max());
    add_region(*operation, bytes);
  } catch (const Error& failure) {
    error = failure;
    error->add({.rank = members_.endpoint.rank(), .group = members_.name, .operation = "allocate"});
    members_.endpoint.poison(*error);
  }
  lock.lock();
  is_driven_ = false;
  changed_.notify_all();
  if (error) {
    fail_all(*error);
    throw Error(*error);
  }
  return host_->registry().part(host_->registry().num_regions(), members_.group_rank).first(bytes);
}

/// The leader makes a region and hands it over; the others take it.
void HostBackend::Queue::add_region(Operation& operation, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t part = std::max<std::size_t>((bytes + kPage - 1) / kPage * kPage, kPage);
  const std::size_t all = part * static_cast<std::size_t>(members_.size());
  if (members_.group_rank == 0) {
    auto memory = transport::SharedMemory::create("trireme " + members_.name, all);
    give(members_, Use::kRegion, memory);
    return host_->registry().add(std::move(memory));
  }
  std::optional<transport::SharedMemory> memory;
  while (!(memory = take(members_, Use::kRegion, kLook))) check(operation, {0});
  if (memory->bytes().size() != all) {
    throw Error(ErrorKind::kInvalidArgument,
                "ranks of '" + members_.name + "' allocate different numbers of bytes: this one " +
                    std::to_string(bytes) + ", group rank 0 about " +
                    std::to_string(memory->bytes().size() / members_.ranks.size()));
  }
  host_->registry().add(std::move(*memory));
}

}  // namespace trireme::collectives
