#include "trireme/wire/system/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>

#include "trireme/base/inheritance.h"
#include "trireme/base/system_error.h"
#include "trireme/error.h"
#include "trireme/wire/system/interfaces.h"

namespace trireme::transport {
namespace {

using Clock = std::chrono::steady_clock;
using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// The addresses of a host; none, and the code of getaddrinfo, where nobody knows it.
struct Resolved {
  AddressList list;
  int code;
};

Resolved try_resolve(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  return {{found, &freeaddrinfo}, code};
}

std::string unknown_host(const Address& address, int code) {
  return "no host is called '" + address.host + "': " + gai_strerror(code);
}

AddressList resolve(const Address& address, int flags) {
  Resolved resolved = try_resolve(address, flags);
  if (resolved.code == 0) return std::move(resolved.list);
  throw Error(ErrorKind::kInvalidArgument, unknown_host(address, resolved.code));
}

/// A cluster may start a process before it has published the name of another.
bool may_be_known_later(int code) {
  return code == EAI_AGAIN || code == EAI_NONAME || code == EAI_NODATA;
}

Descriptor open_socket(const addrinfo& info) {
  Descriptor socket(
      ::socket(info.ai_family, info.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, info.ai_protocol));
  if (!socket.is_open()) throw_system_error("open a socket", errno);
  keep_from_children(socket);
  return socket;
}

void set_option(const Descriptor& socket, int level, int option, int value) {
  if (setsockopt(socket.number(), level, option, &value, sizeof(value)) != 0) {
    throw_system_error("set an option of a socket", errno);
  }
}

void bind_and_listen(const Descriptor& socket, const addrinfo& info, const Address& address) {
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);  // a port of a program that has just ended
  if (::bind(socket.number(), info.ai_addr, info.ai_addrlen) == 0 &&
      ::listen(socket.number(), SOMAXCONN) == 0) {
    return;
  }
  const int code = errno;
  if (code == EADDRINUSE) {
    throw Error(ErrorKind::kInvalidArgument,
                "cannot listen on " + to_text(address) +
                    ": another program uses this port; give another one, or 0 for any");
  }
  if (code == EADDRNOTAVAIL) {
    throw Error(ErrorKind::kInvalidArgument,
                "cannot listen on " + to_text(address) + ": not an address of this host");
  }
  throw_system_error("listen on " + to_text(address), code);
}

bool wait_for_events(const Descriptor& socket, short events, Deadline deadline) {
  pollfd entry{.fd = socket.number(), .events = events, .revents = 0};
  while (true) {
    const int count = ::poll(&entry, 1, poll_timeout(deadline));
    if (count > 0) return true;
    if (count == 0 && Clock::now() >= deadline) return false;
    if (count < 0 && errno != EINTR) throw_system_error("wait for a socket", errno);
  }
}

sockaddr_storage name_of(const Descriptor& socket, decltype(&getsockname) ask) {
  sockaddr_storage name{};
  socklen_t size = sizeof(name);
  ask(socket.number(), reinterpret_cast<sockaddr*>(&name), &size);
  return name;
}

/// Who tries again and again to connect to a free port of its own host is once given that port for
/// its own side: TCP then connects the two sides of one socket.
bool is_connected_to_itself(const Descriptor& socket) {
  const sockaddr_storage own = name_of(socket, getsockname);
  const sockaddr_storage other = name_of(socket, getpeername);
  return std::memcmp(&own, &other, sizeof(own)) == 0;
}

/// One try; the error code, 0 where it is connected.
int try_connect(Descriptor& socket, const addrinfo& info, Deadline deadline) {
  socket = open_socket(info);
  int code = ::connect(socket.number(), info.ai_addr, info.ai_addrlen) == 0 ? 0 : errno;
  if (code == EINPROGRESS) {
    if (!wait_writable(socket, deadline)) return ETIMEDOUT;
    socklen_t size = sizeof(code);
    getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &code, &size);
  }
  return code == 0 && is_connected_to_itself(socket) ? ECONNREFUSED : code;
}

/// What read and write have in common.
std::optional<std::size_t> transferred(ssize_t count, const std::string& action) {
  if (count >= 0) return static_cast<std::size_t>(count);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  if (is_end_of_connection(errno)) return std::nullopt;
  throw_system_error(action, errno);
}

}  // namespace

Descriptor listen_on(const Address& address) {
  const AddressList list = resolve(address, AI_PASSIVE);
  Descriptor socket = open_socket(*list);
  bind_and_listen(socket, *list, address);
  return socket;
}

std::vector<std::string> hosts_of_name(const std::string& host) {
  std::vector<std::string> hosts;
  const Resolved resolved = try_resolve({.host = host}, 0);
  for (const addrinfo* info = resolved.list.get(); info != nullptr; info = info->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(info->ai_addr, info->ai_addrlen, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      hosts.emplace_back(text.data());
    }
  }
  return hosts;
}

Descriptor listen_on_all(int port) {
  const Address any{.host = "::", .port = port};
  const AddressList list = resolve(any, AI_PASSIVE | AI_NUMERICHOST);
  Descriptor socket(::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return listen_on({.host = "0.0.0.0", .port = port});  // without IPv6
  keep_from_children(socket);
  set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  bind_and_listen(socket, *list, any);
  return socket;
}

std::optional<Descriptor> accept_from(const Descriptor& listener) {
  Descriptor socket(::accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.is_open()) {
    keep_from_children(socket);
    return socket;
  }
  // The rest are connections that ended while they waited.
  if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
    throw_system_error("accept a connection", errno);
  }
  return std::nullopt;
}

Descriptor connect_to(const Address& address, const ConnectPolicy& policy) {
  const Deadline deadline = Clock::now() + policy.deadline;
  std::chrono::milliseconds pause = policy.first_pause;
  while (true) {
    std::string problem;
    int code = 0;
    const Resolved host = try_resolve(address, 0);  // anew: its address may change
    if (host.code != 0) {
      problem = unknown_host(address, host.code);
      if (!may_be_known_later(host.code)) throw Error(ErrorKind::kInvalidArgument, problem);
    }
    for (const addrinfo* info = host.list.get(); info != nullptr; info = info->ai_next) {
      Descriptor socket;
      const Deadline end = std::min(deadline, Clock::now() + policy.longest_try);
      code = try_connect(socket, *info, end);
      if (code == 0) return socket;
      problem = std::generic_category().message(code);
    }
    if (code == ENETUNREACH && (is_loopback(address.host) || address.host == "localhost")) {
      throw Error(ErrorKind::kUnavailable,
                  "cannot connect to " + to_text(address) + ": " + problem +
                      "; is the loopback interface up (ip link set lo up)?");
    }
    if (Clock::now() + pause >= deadline) {
      throw Error(ErrorKind::kTimeout, "cannot connect to " + to_text(address) + " within " +
                                           std::to_string(policy.deadline.count()) +
                                           " ms: " + problem);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, policy.longest_pause);
  }
}

Address local_address(const Descriptor& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (getsockname(socket.number(), address, &size) != 0) {
    throw_system_error("find the address of a socket", errno);
  }
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(address, size, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    throw Error(ErrorKind::kIo, "cannot print the address of a socket");
  }
  return {host, std::stoi(port)};
}

void set_options_of_connection(const Descriptor& socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 3);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 5);
  // Keepalive is silent while bytes wait for their acknowledgement; alone they wait for a quarter
  // of an hour.
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 8'000);
}

void set_buffer_size(const Descriptor& socket, int bytes) {
  set_option(socket, SOL_SOCKET, SO_SNDBUF, bytes);
  set_option(socket, SOL_SOCKET, SO_RCVBUF, bytes);
}

bool is_end_of_connection(int code) {
  constexpr std::array kCodes = {ECONNRESET,   EPIPE,        ENOTCONN,  ETIMEDOUT,
                                 ECONNABORTED, ENETDOWN,     ENETRESET, ENETUNREACH,
                                 EHOSTDOWN,    EHOSTUNREACH, ENONET};
  return std::find(kCodes.begin(), kCodes.end(), code) != kCodes.end();
}

std::optional<std::size_t> read_some(const Descriptor& socket, std::span<std::byte> memory) {
  const ssize_t count = ::recv(socket.number(), memory.data(), memory.size(), 0);
  if (count == 0 && !memory.empty()) return std::nullopt;
  return transferred(count, "read from a connection");
}

std::optional<std::size_t> write_some(const Descriptor& socket, std::span<const std::byte> bytes) {
  return write_some(socket, {bytes, std::span<const std::byte>()});
}

std::optional<std::size_t> write_some(const Descriptor& socket,
                                      std::array<std::span<const std::byte>, 2> pieces,
                                      Behind behind) {
  std::array<iovec, 2> entries;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    entries[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()};
  }
  msghdr message{};
  message.msg_iov = entries.data();
  message.msg_iovlen = entries.size();
  const int flags = MSG_NOSIGNAL | (behind == Behind::kMore ? MSG_MORE : 0);
  return transferred(::sendmsg(socket.number(), &message, flags), "write to a connection");
}

bool wait_readable(const Descriptor& socket, Deadline deadline) {
  return wait_for_events(socket, POLLIN, deadline);
}

bool wait_writable(const Descriptor& socket, Deadline deadline) {
  return wait_for_events(socket, POLLOUT, deadline);
}

int poll_timeout(Deadline deadline) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp(left, milliseconds(0), milliseconds(3'600'000)).count());
}

}  // namespace trireme::transport
