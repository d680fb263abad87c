#include "trireme/data/read_ring.h"

#include <liburing.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "trireme/base/check.h"
#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme::data {

ReadRing::ReadRing(int num_requests) : ring_(std::make_unique<io_uring>()) {
  // Of ends there is room for twice as many.
  int code = -::io_uring_queue_init(static_cast<unsigned>(num_requests), ring_.get(), 0);
  if (code == 0) {
    code = -::io_uring_ring_dontfork(ring_.get());
    if (code == 0) return;
    ::io_uring_queue_exit(ring_.get());
  }
  throw Error(ErrorKind::kUnavailable,
              "io_uring is not to be had here: " + std::generic_category().message(code));
}

ReadRing::~ReadRing() {
  if (process_.is_here()) {
    ::io_uring_queue_exit(ring_.get());
  } else {
    ::close(ring_->ring_fd);  // its memory is not there: something else may lie at that address
  }
}

void ReadRing::add(const Request& request) {
  io_uring_sqe* entry = ::io_uring_get_sqe(ring_.get());
  TRIREME_CHECK(entry != nullptr, "more reads than the ring was made for");
  ::io_uring_prep_read(entry, request.descriptor, request.to.data(),
                       static_cast<unsigned>(request.to.size()),
                       static_cast<std::uint64_t>(request.begin));
  ::io_uring_sqe_set_data64(entry, request.id);
}

int ReadRing::submit() {
  for (;;) {
    const int result = ::io_uring_submit(ring_.get());
    if (result >= 0) return result;
    if (result == -EAGAIN || result == -EBUSY) return 0;
    if (result != -EINTR) throw_system_error("begin reads by io_uring", -result);
  }
}

std::vector<ReadQueue::Completion> ReadRing::wait() {
  io_uring_cqe* first = nullptr;
  for (;;) {
    const int code = -::io_uring_wait_cqe(ring_.get(), &first);
    if (code == 0) break;
    if (code != EINTR && code != EAGAIN) throw_system_error("wait for reads by io_uring", code);
  }
  std::vector<Completion> completions;
  unsigned head = 0;
  const io_uring_cqe* entry = nullptr;
  io_uring_for_each_cqe(ring_.get(), head, entry) {
    completions.push_back({.id = entry->user_data, .result = entry->res});
  }
  ::io_uring_cq_advance(ring_.get(), static_cast<unsigned>(completions.size()));
  return completions;
}

}  // namespace trireme::data
