#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trireme/wire/bootstrap/admission.h"
#include "trireme/wire/endpoint/shm/local_mesh.h"
#include "trireme/wire/endpoint/tcp/hello.h"
#include "trireme/wire/endpoint/tcp/world.h"
#include "trireme/wire/system/poller.h"

namespace trireme::transport::internal {

/// The start of a world: rank i connects to all ranks below it, in order, then waits for all above
/// it. Rank 0 waits for nobody, rank 1 for rank 0 only, and so on: no cycle.
///
///     store:  world/id = random, from rank 0     world/size = what the first said
///             world/address/0 = 127.0.0.1:4001   world/host/0 = see local_mesh.h      ...
///             world/address/0 = 127.0.0.1:4001 efa <bytes>     with a fabric beside tcp
///
/// A rank publishes its part in one request and gets all in one. Every connection proves that it
/// belongs to the job (admission.h) before it says which rank it is.
///
/// While it waits it asks the store whether a rank is lost, so that all ranks name the same one.
///
/// Threads  caller-synchronised.
class TcpMesh {
 public:
  /// fabric   `<provider> <address in it>` of this rank; empty: tcp only.
  explicit TcpMesh(const TcpOptions& options, std::string fabric = "");

  void connect();

  /// After `connect`: the connections by rank, and those to ranks of this host for memory.
  std::vector<Descriptor> take_sockets() { return std::move(sockets_); }
  std::map<int, Descriptor> take_local_sockets() { return std::move(local_sockets_); }

  /// Of all ranks, as local_mesh.h numbers them.
  std::vector<int> hosts() const { return hosts_of(hosts_); }
  /// After `connect`: addresses in the fabric, by rank, all of one provider; empty for tcp.
  std::vector<std::string> take_fabric_addresses() { return std::move(fabric_addresses_); }

 private:
  /// A connection of the job that has not said which rank it is.
  struct Newcomer {
    Descriptor socket;
    HelloBytes bytes{};
    std::size_t num_bytes = 0;
  };

  std::string key(const std::string& name) const { return options_.name + "/" + name; }
  std::chrono::milliseconds time_left() const;
  void agree_on_size();
  void claim_rank();
  void publish();
  void meet();
  std::vector<int> not_published() const;
  void take_address(const std::string& published);
  void check_same_fabric() const;
  void check_reachable() const;
  void connect_to_rank(int peer);
  Descriptor open_connection(int peer);
  Descriptor connect_once(int peer);
  void wait_for_answer(const Descriptor& socket);
  Hello read_answer(int peer, const Descriptor& socket);
  void accept_others();
  void welcome(Descriptor socket);
  bool hear(Newcomer& newcomer);
  void answer(Newcomer& newcomer, const Hello& hello);
  Welcome judge(const Hello& hello);
  void adopt(int peer, Descriptor socket);
  std::vector<int> missing() const;
  void check_in_time();
  [[noreturn]] void fail_for_all(Error error) const;
  [[noreturn]] void fail_late(const std::vector<int>& ranks) const;
  void tell_connected(const Error& error);
  [[noreturn]] void fail_lost(int peer);
  Error wrong_size(int peer, int size) const;

  const TcpOptions& options_;
  const Deadline deadline_;
  std::uint64_t world_id_ = 0;
  Descriptor listener_;
  std::optional<int> megabits_;  ///< Of the interface that it listens on, per second.
  Poller poller_;
  LocalMesh local_mesh_;
  std::vector<Address> addresses_;  ///< By rank.
  std::vector<std::string> hosts_;  ///< By rank, as local_mesh.h has them.
  const std::string fabric_;
  std::vector<std::string> fabrics_;           ///< By rank: the providers, `tcp` for none.
  std::vector<std::string> fabric_addresses_;  ///< By rank.
  std::map<std::uint64_t, Newcomer> newcomers_;
  std::uint64_t last_id_ = 0;
  std::vector<Descriptor> sockets_;
  std::map<int, Descriptor> local_sockets_;
};

}  // namespace trireme::transport::internal
