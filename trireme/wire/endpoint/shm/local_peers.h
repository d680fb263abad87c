#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "trireme/wire/system/shared_memory.h"

namespace trireme::transport {

/// The other ranks of a world that run on this host, each at the other end of a Unix socket
/// (SOCK_SEQPACKET) through which memory is handed over. That a rank is one of them is no guess:
/// its socket was met.
///
/// Threads  safe from any thread.
class LocalPeers {
 public:
  /// A stream of memory between two ranks, as a message's tag is one of messages.
  using Tag = std::uint64_t;

  LocalPeers() = default;

  /// sockets   by world rank, connected.
  /// hosts     of all ranks, by rank: a number per host. Empty: each rank is on one of its own.
  explicit LocalPeers(std::map<int, Descriptor> sockets, std::vector<int> hosts = {})
      : sockets_(std::move(sockets)), hosts_(std::move(hosts)) {}

  bool contains(int rank) const { return sockets_.contains(rank); }
  int count() const { return static_cast<int>(sockets_.size()); }

  /// That of a peer, as this process sees it; nothing of other ranks, and where it sees none.
  std::optional<pid_t> process_of(int rank) const;

  /// Readable once that process has ended, whoever else has its descriptors; not open where the
  /// system does not tell, and for ranks of this process.
  Descriptor watch_process(int rank) const;

  /// The number of any rank's host: the same for ranks that share memory, and on all ranks.
  int host_of(int rank) const { return hosts_.empty() ? rank : hosts_.at(rank); }

  /// Hands memory to a peer, which both have from then on. Does not wait for it.
  ///
  /// Errors   kPeerLost where the peer has ended, kTimeout where it has taken nothing for 5 s.
  void give(int peer, Tag tag, const SharedMemory& memory);

  /// The next memory of that tag from the peer; nothing where none has come within `time`.
  ///
  /// Errors   kPeerLost where it has ended; kResourceExhausted where this process has no descriptor
  ///          left: what was handed over is lost then; kCorruptData, and those of
  ///          SharedMemory::open.
  std::optional<SharedMemory> take(int peer, Tag tag, std::chrono::milliseconds time);

 private:
  struct Parcel {
    Descriptor file;
    std::size_t bytes;
  };
  using Stream = std::pair<int, Tag>;

  void read_parcels(int peer);
  std::optional<Parcel> find(const Stream& stream);

  std::map<int, Descriptor> sockets_;  ///< Constant.
  std::vector<int> hosts_;             ///< Constant.
  std::mutex mutex_;
  std::map<Stream, std::deque<Parcel>> arrived_;
};

}  // namespace trireme::transport
