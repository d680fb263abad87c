#pragma once

#include <array>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <string>

#include "trireme/base/descriptor.h"
#include "trireme/launch/outlet.h"
#include "trireme/launch/prefixed_lines.h"
#include "trireme/wire/system/poller.h"
#include "trireme/wire/system/thread.h"

namespace trireme::launch {

/// The captured outputs of ranks, passed on line by line: `[2] text` to this process's standard
/// output or error. Where nobody takes those, ranks wait once their pipes and 1 MiB are full; the
/// caller never does.
///
/// Threads  safe from any thread; the work is done on one of its own.
class RankOutputs {
 public:
  /// Called on its thread when that ends: after `finish`, or with what went wrong.
  using OnEnd = std::function<void(std::exception_ptr)>;

  explicit RankOutputs(OnEnd on_end);

  /// What has not been passed on is lost.
  ~RankOutputs();
  RankOutputs(const RankOutputs&) = delete;
  RankOutputs& operator=(const RankOutputs&) = delete;

  /// output, errors   non-blocking.
  void add(int rank, Descriptor output, Descriptor errors);

  /// Passes on all that has come of a rank that has ended. What it has started may write on.
  void drain(int rank);

  /// A line of our own on standard error.
  void say(std::string line);

  /// Passes on all that has come, and last lines without an end; then ends, as soon as somebody has
  /// taken all of it.
  void finish();

  /// From now on `finish` gives up where nobody takes anything for half a second.
  void hurry();

 private:
  using Clock = std::chrono::steady_clock;

  struct Stream {
    Descriptor pipe;
    PrefixedLines lines;
  };
  using Streams = std::array<Stream, 2>;  ///< Output, errors.

  void serve();
  void wait();
  bool is_at_end() const;
  void write();
  void check_nothing_lost() const;
  void pause_where_full();
  bool read_some(Stream& stream, bool is_error);
  void drain_all(Streams& streams);
  void end_streams();
  Outlet& outlet(bool is_error) { return outlets_[is_error && !is_one_target_ ? 1 : 0]; }

  const OnEnd on_end_;
  transport::Poller poller_;

  // Confined to the thread.
  std::map<int, Streams> streams_;
  const bool is_one_target_;  ///< Both outputs: lines must not mix.
  std::array<Outlet, 2> outlets_;
  std::array<bool, 2> is_paused_{};
  bool is_finishing_ = false;
  bool is_hurried_ = false;
  bool is_stopping_ = false;
  Clock::time_point last_write_;

  transport::LibraryThread thread_;
};

}  // namespace trireme::launch
