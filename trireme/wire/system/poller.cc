#include "trireme/wire/system/poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "trireme/base/system_error.h"

namespace trireme::transport {
namespace {

constexpr std::uint64_t kWakeId = ~std::uint64_t{0};

void control(const Descriptor& epoll, int operation, const Descriptor& socket, epoll_event event) {
  if (epoll_ctl(epoll.number(), operation, socket.number(), &event) != 0) {
    throw_system_error("watch a socket", errno);
  }
}

epoll_event event_of(std::uint64_t id, Poller::Interest interest) {
  epoll_event event{};
  if (interest.in_reading) event.events |= EPOLLIN;
  if (interest.in_writing) event.events |= EPOLLOUT;
  event.data.u64 = id;
  return event;
}

}  // namespace

Poller::Poller()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_.is_open() || !wake_.is_open()) throw_system_error("wait for sockets", errno);
  add(wake_, kWakeId);
}

void Poller::add(const Descriptor& socket, std::uint64_t id) {
  control(epoll_, EPOLL_CTL_ADD, socket, event_of(id, {}));
}

void Poller::change(const Descriptor& socket, std::uint64_t id, Interest interest) {
  control(epoll_, EPOLL_CTL_MOD, socket, event_of(id, interest));
}

void Poller::remove(const Descriptor& socket) { control(epoll_, EPOLL_CTL_DEL, socket, {}); }

bool Poller::post(std::function<void()> function) {
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return false;
    is_first = posted_.empty();
    posted_.push_back(std::move(function));
  }
  if (!is_first) return true;  // the thread has been woken and has not looked yet
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the thread wakes anyway.
  [[maybe_unused]] const auto written = ::write(wake_.number(), &one, sizeof(one));
  return true;
}

std::vector<Poller::Event> Poller::wait(Deadline deadline) {
  std::array<epoll_event, 64> ready{};
  const int count = epoll_wait(epoll_.number(), ready.data(), static_cast<int>(ready.size()),
                               poll_timeout(deadline));
  if (count < 0 && errno != EINTR) throw_system_error("wait for sockets", errno);
  std::vector<Event> events;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t bits = ready[i].events;
    if (ready[i].data.u64 == kWakeId) {
      clear_wake();
      continue;
    }
    events.push_back({ready[i].data.u64, (bits & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0,
                      (bits & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0});
  }
  for (const std::function<void()>& function : take_posted(false)) function();
  return events;
}

void Poller::close() {
  for (const std::function<void()>& function : take_posted(true)) function();
}

void Poller::clear_wake() {
  std::uint64_t counter = 0;
  [[maybe_unused]] const auto read = ::read(wake_.number(), &counter, sizeof(counter));
}

std::vector<std::function<void()>> Poller::take_posted(bool is_last) {
  const std::lock_guard lock(mutex_);
  is_closed_ = is_last;
  return std::exchange(posted_, {});
}

}  // namespace trireme::transport
