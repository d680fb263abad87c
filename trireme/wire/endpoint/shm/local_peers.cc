#include "trireme/wire/endpoint/shm/local_peers.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "trireme/base/system_error.h"
#include "trireme/error.h"
#include "trireme/wire/bootstrap/failure.h"
#include "trireme/wire/system/socket.h"

namespace trireme::transport {
namespace {

using Clock = std::chrono::steady_clock;

/// What travels beside the descriptor.
struct Label {
  std::uint64_t tag;
  std::uint64_t bytes;
};

/// Memory on its way, one label and one descriptor, for sendmsg and recvmsg.
class ParcelMessage {
 public:
  ParcelMessage() {
    message_.msg_iov = &part_;
    message_.msg_iovlen = 1;
    message_.msg_control = control_.data();
    message_.msg_controllen = control_.size();
  }
  ParcelMessage(const ParcelMessage&) = delete;
  ParcelMessage& operator=(const ParcelMessage&) = delete;

  Label& label() { return label_; }
  msghdr& message() { return message_; }

  void attach(const Descriptor& file) {
    cmsghdr* header = CMSG_FIRSTHDR(&message_);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = file.number();
    std::memcpy(CMSG_DATA(header), &number, sizeof number);
  }

  /// What came; closed where there is none.
  Descriptor take_attached() {
    const cmsghdr* header = CMSG_FIRSTHDR(&message_);
    if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
      return {};
    }
    int number = -1;
    std::memcpy(&number, CMSG_DATA(header), sizeof number);
    return Descriptor(number);
  }

 private:
  Label label_{};
  iovec part_{&label_, sizeof label_};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control_{};
  msghdr message_{};
};

Error lost_local(int peer) { return lost_rank(peer, "its connection closed"); }

}  // namespace

std::optional<pid_t> LocalPeers::process_of(int rank) const {
  const auto found = sockets_.find(rank);
  if (found == sockets_.end()) return std::nullopt;
  ucred credentials{};
  socklen_t size = sizeof credentials;
  const int socket = found->second.number();
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return credentials.pid > 0 ? std::optional(credentials.pid) : std::nullopt;
}

Descriptor LocalPeers::watch_process(int rank) const {
#ifdef SYS_pidfd_open
  const auto process = process_of(rank);
  if (!process || *process == ::getpid()) return {};
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, *process, 0)));  // closed on exec
#else
  return {};
#endif
}

void LocalPeers::give(int peer, Tag tag, const SharedMemory& memory) {
  const Descriptor& socket = sockets_.at(peer);
  ParcelMessage parcel;
  parcel.label() = {tag, memory.bytes().size()};
  parcel.attach(memory.file());
  const Deadline deadline = Clock::now() + std::chrono::seconds(5);
  while (::sendmsg(socket.number(), &parcel.message(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    const int code = errno;
    if (is_end_of_connection(code)) throw lost_local(peer);
    if (code != EAGAIN && code != EINTR) throw_system_error("hand over shared memory", code);
    if (!wait_writable(socket, deadline)) {
      Error late(ErrorKind::kTimeout, "rank " + std::to_string(peer) +
                                          " has taken no shared memory for 5 s; is it stopped?");
      throw Error(late.add({.peer = peer}));
    }
  }
}

std::optional<SharedMemory> LocalPeers::take(int peer, Tag tag, std::chrono::milliseconds time) {
  const Deadline deadline = Clock::now() + time;
  while (true) {
    read_parcels(peer);
    if (std::optional<Parcel> parcel = find({peer, tag})) {
      return SharedMemory::open(std::move(parcel->file), parcel->bytes);
    }
    // Another thread may find it first and put it away for this one.
    const Deadline look = std::min(deadline, Clock::now() + std::chrono::milliseconds(10));
    wait_readable(sockets_.at(peer), look);
    if (Clock::now() >= deadline) return std::nullopt;
  }
}

void LocalPeers::read_parcels(int peer) {
  const std::lock_guard lock(mutex_);
  const Descriptor& socket = sockets_.at(peer);
  while (true) {
    ParcelMessage parcel;
    const ssize_t count =
        ::recvmsg(socket.number(), &parcel.message(), MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count == 0 || (count < 0 && is_end_of_connection(errno))) throw lost_local(peer);
    if (count < 0) throw_system_error("receive shared memory", errno);
    Descriptor file = parcel.take_attached();
    if (!file.is_open() && (parcel.message().msg_flags & MSG_CTRUNC) != 0) {
      Error full(ErrorKind::kResourceExhausted, "no descriptor is left for shared memory of rank " +
                                                    std::to_string(peer) +
                                                    "; raise the limit (ulimit -n)");
      throw Error(full.add({.peer = peer}));
    }
    if (count != sizeof(Label) || !file.is_open()) {
      throw Error(ErrorKind::kCorruptData,
                  "rank " + std::to_string(peer) + " sent no shared memory where it should have");
    }
    arrived_[{peer, parcel.label().tag}].push_back({std::move(file), parcel.label().bytes});
  }
}

std::optional<LocalPeers::Parcel> LocalPeers::find(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  const auto found = arrived_.find(stream);
  if (found == arrived_.end()) return std::nullopt;
  Parcel parcel = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) arrived_.erase(found);
  return parcel;
}

}  // namespace trireme::transport
