#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/descriptor.h"
#include "trireme/wire/bootstrap/store.h"

namespace trireme::transport::internal {

struct LocalMeshOptions {
  StoreClient& store;
  int rank = 0;
  Deadline deadline;
  bool shares_memory = true;
  Logger logger{LogLevel::kWarning};
};

/// A number for each rank's host, the lowest rank on it, by what the ranks publish. Who shares no
/// memory is on one of its own.
std::vector<int> hosts_of(std::span<const std::string> publications);

/// Finds the ranks of this host and connects to each of them: a rank to those below it. Every rank
/// of the world takes part.
///
///     publication of a rank:  <host> <name of an abstract Unix socket>
///
/// Two ranks are on one host where they say the same host, which holds the boot's id, the network
/// namespace and the user; `unknown` is no host. Whoever connects must be of the same user, prove
/// that it belongs to the job (admission.h) and know the world's id; others are turned away.
///
/// Threads  caller-synchronised.
class LocalMesh {
 public:
  /// Listens, where it shares memory.
  explicit LocalMesh(const LocalMeshOptions& options);

  /// What the others must know of this rank.
  const std::string& publication() const { return publication_; }

  /// Blocks. world_id: what the ranks of a world know. publications: of all ranks, by rank.
  ///
  /// Errors   kTimeout, naming who is missing; kPeerLost of the store.
  std::map<int, Descriptor> connect(std::uint64_t world_id,
                                    std::span<const std::string> publications);

 private:
  /// A connection of the job that has not said which rank it is.
  using Newcomers = std::map<std::uint64_t, Descriptor>;

  void find_others(std::span<const std::string> publications);
  void connect_to_rank(int rank, const std::string& name);
  Descriptor open_connection(int rank, const std::string& name) const;
  Descriptor connect_once(const std::string& name) const;
  void accept_others();
  void hear(Descriptor socket);
  void wait_for_answer(const Descriptor& socket) const;
  void check_in_time() const;

  const LocalMeshOptions options_;
  std::uint64_t world_id_ = 0;
  std::string publication_;
  Descriptor listener_;
  std::map<int, std::string> names_;  ///< Of the other ranks of this host.
  std::map<int, Descriptor> sockets_;
};

}  // namespace trireme::transport::internal
