#include "trireme/launch/rank_outputs.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "trireme/base/system_error.h"

namespace trireme::launch {
namespace {

constexpr std::chrono::milliseconds kPatience{500};

bool is_same_file(int one, int other) {
  struct stat a{}, b{};
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

std::uint64_t id_of(int rank, bool is_error) {
  return static_cast<std::uint64_t>(rank) * 2 + (is_error ? 1 : 0);
}

}  // namespace

RankOutputs::RankOutputs(OnEnd on_end)
    : on_end_(std::move(on_end)),
      is_one_target_(is_same_file(STDOUT_FILENO, STDERR_FILENO)),
      outlets_{Outlet(STDOUT_FILENO), Outlet(STDERR_FILENO)},
      thread_("outputs", [this] { serve(); }) {}

RankOutputs::~RankOutputs() {
  poller_.post([this] { is_stopping_ = true; });
  thread_.join();
}

void RankOutputs::add(int rank, Descriptor output, Descriptor errors) {
  const PrefixedLines lines("[" + std::to_string(rank) + "] ");
  // A posted function can be copied: shared by its copies.
  auto streams = std::make_shared<Streams>(
      Streams{Stream{std::move(output), lines}, Stream{std::move(errors), lines}});
  poller_.post([this, rank, streams] {
    Streams& added = streams_.emplace(rank, std::move(*streams)).first->second;
    for (const bool is_error : {false, true}) {
      poller_.add(added[is_error].pipe, id_of(rank, is_error));
      poller_.change(added[is_error].pipe, id_of(rank, is_error),
                     {.in_reading = !is_paused_[is_error]});
    }
  });
}

void RankOutputs::drain(int rank) {
  poller_.post([this, rank] {
    if (const auto found = streams_.find(rank); found != streams_.end()) drain_all(found->second);
  });
}

void RankOutputs::say(std::string line) {
  poller_.post([this, line = std::move(line)] { outlet(true).add(line + "\n"); });
}

void RankOutputs::finish() {
  poller_.post([this] { end_streams(); });
}

void RankOutputs::hurry() {
  poller_.post([this] { is_hurried_ = true; });
}

// ---- The thread

void RankOutputs::serve() {
  std::exception_ptr failure;
  try {
    while (!is_at_end()) {
      wait();
      for (const transport::Poller::Event& event : poller_.wait(Clock::now())) {
        const auto found = streams_.find(static_cast<int>(event.id / 2));
        const bool is_error = event.id % 2 != 0;
        if (found != streams_.end()) read_some(found->second[is_error], is_error);
      }
      write();
      pause_where_full();
    }
    check_nothing_lost();
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  streams_.clear();  // ranks that write on learn that nobody reads
  poller_.close();
  on_end_(failure);
}

/// For something to read, to write or to do.
void RankOutputs::wait() {
  std::array<pollfd, 3> entries = {pollfd{poller_.descriptor().number(), POLLIN, 0},
                                   pollfd{outlets_[0].to_poll(), POLLOUT, 0},
                                   pollfd{outlets_[1].to_poll(), POLLOUT, 0}};
  const bool is_short = is_finishing_ && is_hurried_;
  const int timeout = is_short ? transport::poll_timeout(last_write_ + kPatience) : -1;
  if (::poll(entries.data(), entries.size(), timeout) < 0 && errno != EINTR) {
    throw_system_error("wait for the outputs of ranks", errno);
  }
}

bool RankOutputs::is_at_end() const {
  if (is_stopping_) return true;
  if (!is_finishing_) return false;
  if (outlets_[0].is_empty() && outlets_[1].is_empty()) return true;
  return is_hurried_ && Clock::now() >= last_write_ + kPatience;
}

void RankOutputs::write() {
  for (Outlet& outlet : outlets_) {
    if (outlet.write()) last_write_ = Clock::now();
  }
}

void RankOutputs::check_nothing_lost() const {
  for (const Outlet& outlet : outlets_) {
    if (outlet.problem() != 0) throw_system_error("write what ranks have said", outlet.problem());
  }
}

/// Ranks wait for the reader as if they wrote to it themselves.
void RankOutputs::pause_where_full() {
  for (const bool is_error : {false, true}) {
    const bool is_full = outlet(is_error).is_full();
    if (std::exchange(is_paused_[is_error], is_full) == is_full) continue;
    for (const auto& [rank, streams] : streams_) {
      const Descriptor& pipe = streams[is_error].pipe;
      if (pipe.is_open()) poller_.change(pipe, id_of(rank, is_error), {.in_reading = !is_full});
    }
  }
}

/// Whether there may be more at once. The end of a pipe is reported, and so read, also where it is
/// paused: no more than it holds.
bool RankOutputs::read_some(Stream& stream, bool is_error) {
  if (!stream.pipe.is_open()) return false;
  std::array<char, 64 * 1024> buffer;
  const ssize_t count = ::read(stream.pipe.number(), buffer.data(), buffer.size());
  if (count > 0) {
    outlet(is_error).add(stream.lines.add({buffer.data(), static_cast<std::size_t>(count)}));
    return true;
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  outlet(is_error).add(stream.lines.finish());
  stream.pipe.reset();
  return false;
}

void RankOutputs::drain_all(Streams& streams) {
  // A grandchild that never stops writing is not waited for: no more than pipes hold.
  constexpr int kMaxReads = 16;
  for (const bool is_error : {false, true}) {
    for (int i = 0; i < kMaxReads && read_some(streams[is_error], is_error); ++i) continue;
  }
}

void RankOutputs::end_streams() {
  for (auto& [rank, streams] : streams_) {
    drain_all(streams);
    for (const bool is_error : {false, true}) {
      outlet(is_error).add(streams[is_error].lines.finish());
    }
  }
  streams_.clear();
  is_finishing_ = true;
  last_write_ = Clock::now();
}

}  // namespace trireme::launch
