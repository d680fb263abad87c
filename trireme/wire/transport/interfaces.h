#pragma once

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
