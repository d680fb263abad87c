#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trireme/base/address.h"
#include "trireme/base/descriptor.h"

namespace trireme::transport {

using trireme::Address;
using trireme::parse_address;
using trireme::to_text;

using Deadline = std::chrono::steady_clock::time_point;

/// When a connection is tried again that was refused or timed out, or whose host nobody knows yet:
/// after pauses that double.
struct ConnectPolicy {
  std::chrono::milliseconds deadline{30'000};    ///< No try after that: kTimeout.
  std::chrono::milliseconds longest_try{2'000};  ///< With one of the host's addresses.
  std::chrono::milliseconds first_pause{5};
  std::chrono::milliseconds longest_pause{200};
};

// All sockets are non-blocking, closed on exec and kept from forked children. Errors are kIo with the system's reason, where
// nothing else is said.

/// Errors   kInvalidArgument, naming the address and what to do, where another program has it or it
///          is not of this host.
Descriptor listen_on(const Address& address);

/// The addresses of a host, in numbers; none where nobody knows it.
std::vector<std::string> hosts_of_name(const std::string& host);

/// On all addresses of this host, IPv4 and IPv6. Errors as above.
Descriptor listen_on_all(int port);

/// The next waiting connection; nothing where there is none. kResourceExhausted where the process
/// or system is out of descriptors.
std::optional<Descriptor> accept_from(const Descriptor& listener);

/// Errors   kTimeout, also where nobody knew the host until then; kInvalidArgument where its name
///          cannot be one.
Descriptor connect_to(const Address& address, const ConnectPolicy& policy);

/// Local side of a connection or listener, in numbers.
Address local_address(const Descriptor& socket);

/// Small messages leave at once; a host that vanishes without a word is noticed within 10 s (8 s
/// and what the kernel's timers add), whether bytes are under way to it or not. So is one that
/// takes nothing of them for as long: a process that was stopped in the middle of messages. One
/// that was stopped for 5 s is not lost.
void set_options_of_connection(const Descriptor& socket);

/// Size of the kernel's buffers for each direction.
void set_buffer_size(const Descriptor& socket, int bytes);

/// Whether the system's error `code` of a read or write means that the connection has ended: the
/// other side closed or reset it, or its host cannot be reached any more.
bool is_end_of_connection(int code);

/// Reads or writes once: number of bytes, 0 where it would block; nothing at the connection's end.
std::optional<std::size_t> read_some(const Descriptor& socket, std::span<std::byte> memory);
std::optional<std::size_t> write_some(const Descriptor& socket, std::span<const std::byte> bytes);

/// Whether another write follows at once: the system then waits with a packet that is not full.
enum class Behind : std::uint8_t { kNothing, kMore };

/// As above for two pieces that follow each other.
std::optional<std::size_t> write_some(const Descriptor& socket,
                                      std::array<std::span<const std::byte>, 2> pieces,
                                      Behind behind = Behind::kNothing);

/// Waits until reading (writing) would not block; whether that was before `deadline`.
bool wait_readable(const Descriptor& socket, Deadline deadline);
bool wait_writable(const Descriptor& socket, Deadline deadline);

/// Milliseconds until `deadline` for poll and epoll: rounded up, at least 0.
int poll_timeout(Deadline deadline);

}  // namespace trireme::transport
