#include "trireme/launch/outlet.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace trireme::launch {
namespace {

constexpr std::size_t kFull = std::size_t{1} << 20;

bool takes_more(int target) {
  pollfd entry{.fd = target, .events = POLLOUT, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

}  // namespace

void Outlet::add(std::string_view text) {
  if (target_ >= 0) waiting_ += text;
}

bool Outlet::is_full() {
  is_full_ = waiting_.size() >= (is_full_ ? kFull / 2 : kFull);
  return is_full_;
}

/// A pipe that takes anything takes so many bytes without blocking.
std::size_t Outlet::next_piece(std::size_t begin) const {
  const std::string_view rest = std::string_view(waiting_).substr(begin);
  if (rest.size() <= PIPE_BUF) return rest.size();
  const std::size_t end = rest.rfind('\n', PIPE_BUF - 1);
  return end == std::string_view::npos ? PIPE_BUF : end + 1;
}

bool Outlet::write() {
  std::size_t done = 0;
  while (done < waiting_.size() && takes_more(target_)) {
    const ssize_t count = ::write(target_, waiting_.data() + done, next_piece(done));
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EINTR) {
      break;
    } else {
      problem_ = errno;
      target_ = -1;
      done = waiting_.size();
    }
  }
  waiting_.erase(0, done);
  return done > 0;
}

}  // namespace trireme::launch
