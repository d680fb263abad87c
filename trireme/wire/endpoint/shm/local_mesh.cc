#include "trireme/wire/endpoint/shm/local_mesh.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include "trireme/base/system_error.h"
#include "trireme/error.h"
#include "trireme/wire/bootstrap/admission.h"
#include "trireme/wire/bootstrap/failure.h"
#include "trireme/wire/system/local_socket.h"
#include "trireme/wire/system/shared_memory.h"

namespace trireme::transport::internal {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view kUnknownHost = "unknown";

constexpr milliseconds kLook{50};  // how often the store is asked who is lost

/// What a rank says first on a connection.
struct Introduction {
  std::uint64_t world_id;
  std::int64_t rank;
};

/// As the system names it; empty where it does not.
std::string namespace_of(const std::string& kind) {
  std::array<char, 64> name{};
  const std::string path = "/proc/thread-self/ns/" + kind;
  return ::readlink(path.c_str(), name.data(), name.size() - 1) > 0 ? name.data() : "";
}

/// The same text in all processes that reach each other's abstract sockets and are let in there,
/// which is for one user only, and in no others.
std::string this_host() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  const std::string network = namespace_of("net");
  const std::string users = namespace_of("user");
  if (boot.empty() || network.empty() || users.empty()) return std::string(kUnknownHost);
  return boot + "/" + network + "/" + users + "/" + std::to_string(::getuid());
}

}  // namespace

std::vector<int> hosts_of(std::span<const std::string> publications) {
  std::map<std::string, int> first;
  std::vector<int> hosts;
  for (const std::string& publication : publications) {
    const auto rank = static_cast<int>(hosts.size());
    const std::string host = publication.substr(0, publication.find(' '));
    hosts.push_back(host == kUnknownHost ? rank : first.try_emplace(host, rank).first->second);
  }
  return hosts;
}

LocalMesh::LocalMesh(const LocalMeshOptions& options) : options_(options) {
  if (options_.shares_memory) {
    ProcessMemory::permit();  // before the others know where this rank is
    listener_ = listen_locally();
  }
  publication_ = listener_.is_open() ? this_host() + " " + name_of(listener_)
                                     : std::string(kUnknownHost) + " ";
}

std::map<int, Descriptor> LocalMesh::connect(std::uint64_t world_id,
                                             std::span<const std::string> publications) {
  world_id_ = world_id;
  if (!options_.shares_memory) return {};
  find_others(publications);
  for (const auto& [rank, name] : names_) {
    if (rank < options_.rank) connect_to_rank(rank, name);
  }
  accept_others();
  return std::move(sockets_);
}

void LocalMesh::find_others(std::span<const std::string> publications) {
  const std::string host = publication_.substr(0, publication_.find(' '));
  if (host == kUnknownHost) return;
  for (std::size_t rank = 0; rank < publications.size(); ++rank) {
    const std::string& text = publications[rank];
    const std::size_t space = text.find(' ');
    if (static_cast<int>(rank) == options_.rank || space == std::string::npos) continue;
    if (text.substr(0, space) == host && space + 1 < text.size()) {
      names_[static_cast<int>(rank)] = text.substr(space + 1);
    }
  }
}

Descriptor LocalMesh::open_connection(int rank, const std::string& name) const {
  std::optional<Descriptor> socket =
      enter_with_retries([&] { return connect_once(name); }, options_.store.token(), "memory",
                         "rank " + std::to_string(rank) + " of this host",
                         [this](const Descriptor& waiting) { wait_for_answer(waiting); });
  if (socket) return std::move(*socket);
  check_in_time();  // the store may know more
  throw lost_rank(rank, "its connection closed");
}

Descriptor LocalMesh::connect_once(const std::string& name) const {
  while (true) {
    if (Descriptor socket = try_connect_locally(name); socket.is_open()) return socket;
    check_in_time();
    std::this_thread::sleep_for(milliseconds(1));
  }
}

void LocalMesh::connect_to_rank(int rank, const std::string& name) {
  Descriptor socket = open_connection(rank, name);
  const Introduction hello{world_id_, options_.rank};
  if (::send(socket.number(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) {
    throw_system_error("greet rank " + std::to_string(rank) + " of this host", errno);
  }
  sockets_[rank] = std::move(socket);
}

void LocalMesh::accept_others() {
  Poller poller;
  Newcomers newcomers;
  std::uint64_t last_id = 0;
  Gate gate(std::move(listener_), poller,
            {.token = options_.store.token(),
             .door = "memory",
             .logger = options_.logger,
             .may_try = is_of_this_user});
  while (sockets_.size() < names_.size()) {
    check_in_time();
    for (const Poller::Event& event :
         poller.wait(std::min(gate.next_deadline(), Clock::now() + kLook))) {
      if (auto found = newcomers.extract(event.id)) {
        poller.remove(found.mapped());
        hear(std::move(found.mapped()));
      } else if (std::optional<Descriptor> socket = gate.serve(event)) {
        poller.add(*socket, ++last_id);
        newcomers[last_id] = std::move(*socket);
      }
    }
    gate.expire();
  }
}

/// Its introduction, which is one packet, has come, or its end.
void LocalMesh::hear(Descriptor socket) {
  Introduction hello{};
  if (::recv(socket.number(), &hello, sizeof hello, 0) != sizeof hello ||
      hello.world_id != world_id_) {
    return;
  }
  const int rank = static_cast<int>(hello.rank);
  if (rank > options_.rank && names_.contains(rank) && !sockets_.contains(rank)) {
    sockets_[rank] = std::move(socket);
  }
}

void LocalMesh::wait_for_answer(const Descriptor& socket) const {
  while (!wait_readable(socket, Clock::now() + kLook)) check_in_time();
}

void LocalMesh::check_in_time() const {
  options_.store.check();
  if (Clock::now() < options_.deadline) return;
  std::vector<int> missing;
  for (const auto& [rank, name] : names_) {
    if (!sockets_.contains(rank)) missing.push_back(rank);
  }
  Error late(ErrorKind::kTimeout, "no connection in time to the Unix socket of " +
                                      ranks_text(missing) + " of this host");
  throw Error(late.add({.rank = options_.rank, .operation = "start"}));
}

}  // namespace trireme::transport::internal
