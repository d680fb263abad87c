#include "trireme/wire/system/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trireme/base/inheritance.h"
#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme::transport::internal {
namespace {

struct LocalAddress {
  sockaddr_un address{};
  socklen_t size = sizeof(sa_family_t);

  /// name   empty: any.
  explicit LocalAddress(const std::string& name) {
    address.sun_family = AF_UNIX;
    if (name.empty()) return;
    const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, name.data(), length);
    size = static_cast<socklen_t>(sizeof(sa_family_t) + 1 + length);
  }

  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Descriptor open_local_socket() {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) throw_system_error("open a Unix socket", errno);
  keep_from_children(socket);
  return socket;
}

}  // namespace

Descriptor listen_locally(const std::string& name) {
  Descriptor socket = open_local_socket();
  const LocalAddress address(name);
  if (::bind(socket.number(), address.generic(), address.size) != 0 ||
      ::listen(socket.number(), SOMAXCONN) != 0) {
    if (errno == EADDRINUSE) {
      throw Error(ErrorKind::kInvalidArgument, "another process listens on the Unix socket '" +
                                                   name +
                                                   "' of this job; was rank 0 started twice?");
    }
    throw_system_error("listen on a Unix socket", errno);
  }
  return socket;
}

std::string name_of(const Descriptor& listener) {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  if (::getsockname(listener.number(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw_system_error("find the name of a Unix socket", errno);
  }
  return {address.sun_path + 1, size - sizeof(sa_family_t) - 1};
}

Descriptor try_connect_locally(const std::string& name) {
  Descriptor socket = open_local_socket();
  const LocalAddress address(name);
  if (::connect(socket.number(), address.generic(), address.size) == 0) return socket;
  if (errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED) {
    throw_system_error("connect to a rank of this host", errno);
  }
  return {};
}

bool is_of_this_user(const Descriptor& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::getuid();
}

}  // namespace trireme::transport::internal
