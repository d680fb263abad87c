#include "trireme/wire/transport/shm/local_mesh.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/base/system_error.h"

namespace trireme::transport::internal {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{50};  // how often the store is asked who is lost

/// What a rank says first on a connection.
struct Introduction {
  std::uint64_t world_id;
  std::int64_t rank;
};

/// The same text in all processes that reach each other's abstract sockets, and in no others.
std::string this_host() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 64> space{};
  const ssize_t count = ::readlink("/proc/self/ns/net", space.data(), space.size() - 1);
  if (boot.empty() || count <= 0) return "unknown";
  return boot + "/" + space.data();
}

Descriptor open_local_socket() {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) throw_system_error("open a Unix socket", errno);
  return socket;
}

/// Listens under a name that the system chooses.
Descriptor listen_locally() {
  Descriptor socket = open_local_socket();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(socket.number(), generic, sizeof(sa_family_t)) != 0 ||
      ::listen(socket.number(), SOMAXCONN) != 0) {
    throw_system_error("listen on a Unix socket", errno);
  }
  return socket;
}

/// The abstract name, without the zero before it: five digits.
std::string name_of(const Descriptor& listener) {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  if (::getsockname(listener.number(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw_system_error("find the name of a Unix socket", errno);
  }
  return {address.sun_path + 1, size - sizeof(sa_family_t) - 1};
}

/// Whether it succeeded; not where too many wait to be accepted.
bool try_connect(const Descriptor& socket, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(),
              std::min(name.size(), sizeof address.sun_path - 1));
  const auto size = static_cast<socklen_t>(sizeof(sa_family_t) + 1 + name.size());
  if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), size) == 0)
    return true;
  if (errno == EAGAIN || errno == EINTR) return false;
  throw_system_error("connect to a rank of this host", errno);
}

bool is_of_this_user(const Descriptor& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::getuid();
}

class LocalMesh {
 public:
  explicit LocalMesh(const LocalMeshOptions& options) : options_(options) {}

  std::map<int, Descriptor> connect() {
    publish();
    if (!options_.shares_memory) return {};
    find_others();
    for (const auto& [rank, name] : names_) {
      if (rank < options_.rank) connect_to_rank(rank, name);
    }
    while (sockets_.size() < names_.size()) accept_next();
    return std::move(sockets_);
  }

 private:
  std::string key(int rank) const { return options_.name + "/host/" + std::to_string(rank); }

  void publish() {
    host_ = options_.shares_memory ? this_host() : "none";
    if (options_.shares_memory) listener_ = listen_locally();
    options_.store.set(key(options_.rank),
                       host_ + (listener_.is_open() ? " " + name_of(listener_) : " "));
  }

  void find_others() {
    for (int rank = 0; rank < options_.world_size; ++rank) {
      if (rank == options_.rank) continue;
      const auto left = std::chrono::ceil<milliseconds>(options_.deadline - Clock::now());
      const std::string text = options_.store.get(key(rank), std::max(left, milliseconds(0)));
      const std::size_t space = text.find(' ');
      const std::string name = text.substr(std::min(space + 1, text.size()));
      if (text.substr(0, space) == host_ && !name.empty()) names_[rank] = name;
    }
  }

  void connect_to_rank(int rank, const std::string& name) {
    Descriptor socket = open_local_socket();
    while (!try_connect(socket, name)) {
      check_in_time();
      std::this_thread::sleep_for(milliseconds(1));
    }
    const Introduction hello{options_.world_id, options_.rank};
    if (::send(socket.number(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) {
      throw_system_error("greet rank " + std::to_string(rank) + " of this host", errno);
    }
    sockets_[rank] = std::move(socket);
  }

  void accept_next() {
    check_in_time();
    if (!wait_readable(listener_, std::min(options_.deadline, Clock::now() + kLook))) return;
    std::optional<Descriptor> socket = accept_from(listener_);
    if (!socket || !is_of_this_user(*socket)) return;
    // Said with the connection: who connects and says nothing within a moment is none of us.
    Introduction hello{};
    if (!wait_readable(*socket, Clock::now() + milliseconds(500)) ||
        ::recv(socket->number(), &hello, sizeof hello, 0) != sizeof hello ||
        hello.world_id != options_.world_id) {
      return;
    }
    const int rank = static_cast<int>(hello.rank);
    if (rank > options_.rank && names_.contains(rank) && !sockets_.contains(rank)) {
      sockets_[rank] = std::move(*socket);
    }
  }

  void check_in_time() const {
    options_.store.check();
    if (Clock::now() < options_.deadline) return;
    std::string missing;
    for (const auto& [rank, name] : names_) {
      if (!sockets_.contains(rank)) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    }
    Error late(ErrorKind::kTimeout,
               "rank " + missing + " of this host has not opened its Unix socket in time");
    throw Error(late.add({.rank = options_.rank, .operation = "start"}));
  }

  const LocalMeshOptions& options_;
  std::string host_;
  Descriptor listener_;
  std::map<int, std::string> names_;  ///< Of the other ranks of this host.
  std::map<int, Descriptor> sockets_;
};

}  // namespace

std::map<int, Descriptor> connect_local_ranks(const LocalMeshOptions& options) {
  return LocalMesh(options).connect();
}

}  // namespace trireme::transport::internal
