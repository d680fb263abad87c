#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace trireme::transport {

/// An address of a network interface.
struct Interface {
  std::string name;
  std::string host;  ///< In numbers; empty for an interface that has no address.
  bool is_v6 = false;
  bool is_up = false;
  bool is_loopback = false;
};

/// All of this host, IPv4 first.
///
/// Errors   kIo.
std::vector<Interface> list_interfaces();

/// First address of a network interface, in numbers; IPv4 before IPv6.
///
/// Errors   kInvalidArgument, naming those that there are, where none has that name or it has no
///          address.
std::string host_of_interface(const std::string& name);

/// Name of the interface that has the address `host`, in numbers; nothing where none has.
std::optional<std::string> interface_of_host(const std::string& host);

/// Speed of an interface's link, per second, as the system has it; nothing where it has none.
std::optional<int> megabits_of_interface(const std::string& name);

/// Whether an address in numbers leads to the host that uses it: 127.x.x.x, ::1.
bool is_loopback(const std::string& host);

}  // namespace trireme::transport

namespace trireme::transport::internal {

/// Buffer of a connection between hosts, its share of what may be on its way to a rank: where many
/// send to one at once, the queue of a slow link is else filled with what the system's buffers hold,
/// and what is urgent waits behind that (4 MiB gathered by 4 hosts at 1 Gb/s: 28.6 ms with 128 KiB,
/// 27.4 ms with 43 KiB, bound 26.3 ms).
/// 0: as large as the system finds right. So it is for links above 10 Gb/s, which a fixed share would
/// slow down, and where the speed is not known, as in clouds.
///
/// megabits   of this rank's link, per second.
constexpr int shared_window(int world_size, std::optional<int> megabits) {
  constexpr int kAll = 128 * 1024;
  constexpr int kLeastSlow = 32 * 1024;
  constexpr int kLeast = 64 * 1024;  // 10 Gb/s of one connection at 50 us
  if (!megabits || *megabits > 10'000) return 0;
  return std::max(*megabits <= 1000 ? kLeastSlow : kLeast, kAll / std::max(1, world_size - 1));
}

}  // namespace trireme::transport::internal
