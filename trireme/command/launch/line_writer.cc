#include "trireme/command/launch/line_writer.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace trireme::launch {

void LineWriter::add(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t room = kMaxLine - rest_.size();
    const std::size_t count = std::min(end == std::string_view::npos ? text.size() : end, room);
    rest_ += text.substr(0, count);
    text.remove_prefix(count);
    const bool is_whole = !text.empty() && text.front() == '\n';
    if (is_whole) text.remove_prefix(1);
    if (is_whole || rest_.size() == kMaxLine) {
      append(rest_, lines);
      rest_.clear();
    }
  }
  write(lines);
}

void LineWriter::finish() {
  if (rest_.empty()) return;
  std::string lines;
  append(rest_, lines);
  rest_.clear();
  write(lines);
}

void LineWriter::append(std::string_view line, std::string& lines) const {
  lines += prefix_;
  lines += line;
  lines += '\n';
}

void LineWriter::write(std::string_view text) {
  while (!text.empty() && target_ >= 0) {
    const ssize_t count = ::write(target_, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {  // a pipe or terminal that somebody made non-blocking
      pollfd entry{.fd = target_, .events = POLLOUT, .revents = 0};
      ::poll(&entry, 1, 1000);
    } else if (errno != EINTR) {
      target_ = -1;
    }
  }
}

}  // namespace trireme::launch
