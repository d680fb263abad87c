#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace trireme {

enum class DeviceKind : std::uint8_t { kCpu, kCuda };

/// A CPU or an accelerator of this host. Text form: `cpu`, `cuda:1`.
struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;  ///< 0 for a CPU.

  auto operator<=>(const Device&) const = default;
};

std::string to_text(const Device& device);

/// Inverse of `to_text`; `cuda` is `cuda:0`. Throws kInvalidArgument, naming the text, where it is
/// not of that form.
Device parse_device(std::string_view text);

class Event;

/// Work of one device, done in the order given. On a CPU every call has done its work when it
/// returns, so nothing here waits.
///
/// Threads  confined to the thread that gives the work.
class Stream {
 public:
  virtual ~Stream() = default;

  virtual Device device() const = 0;

  /// What is given to this stream from now on starts after `event`. Does not block.
  virtual void run_after(const Event& event) = 0;

  /// Blocks until all work given so far is done.
  virtual void wait() = 0;
};

/// A mark in a stream's work. Before the first `record` it counts as done.
///
/// Threads  `record` by the stream's thread; the rest from any, once it has returned.
class Event {
 public:
  virtual ~Event() = default;

  virtual Device device() const = 0;

  /// Puts the mark behind the work that `stream` has so far; an earlier mark is forgotten.
  virtual void record(Stream& stream) = 0;

  virtual bool is_done() const = 0;

  /// Blocks until the work before the mark is done.
  virtual void wait() const = 0;

  /// Device time from `earlier` to this. Both are recorded and done, and of the same device, else
  /// kInvalidArgument.
  virtual std::chrono::nanoseconds since(const Event& earlier) const = 0;
};

/// Errors   kUnavailable, saying why, for a device that this build or machine cannot drive.
std::unique_ptr<Stream> make_stream(const Device& device);
std::unique_ptr<Event> make_event(const Device& device);

}  // namespace trireme
