#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trireme/wire/transport/poller.h"
#include "trireme/wire/transport/tcp/hello.h"
#include "trireme/wire/transport/tcp/world.h"

namespace trireme::transport::internal {

/// The start of a world: rank i connects to all ranks below it, in order, then waits for all above
/// it. Rank 0 waits for nobody, rank 1 for rank 0 only, and so on: no cycle.
///
///     store:  world/id = random, from rank 0     world/address/0 = 127.0.0.1:4001   ...
///
/// While it waits it asks the store whether a rank is lost, so that all ranks name the same one.
///
/// Threads  caller-synchronised.
class Mesh {
 public:
  explicit Mesh(const TcpOptions& options);

  void connect();

  /// After `connect`: the connections by rank, and those to ranks of this host for memory.
  std::vector<Descriptor> take_sockets() { return std::move(sockets_); }
  std::map<int, Descriptor> take_local_sockets() { return std::move(local_sockets_); }

 private:
  /// A connection that has not said who it is; may be anybody's.
  struct Stranger {
    Descriptor socket;
    HelloBytes bytes{};
    std::size_t num_bytes = 0;
  };

  std::string key(const std::string& name) const { return options_.name + "/" + name; }
  std::chrono::milliseconds time_left() const;
  void publish();
  void connect_to_rank(int peer);
  Descriptor open_connection(int peer);
  Hello read_answer(int peer, const Descriptor& socket);
  void accept_others();
  void connect_locally();
  void accept_strangers();
  bool hear(Stranger& stranger);
  void answer(Stranger& stranger, const Hello& hello);
  Welcome judge(const Hello& hello) const;
  void adopt(int peer, Descriptor socket);
  std::vector<int> missing() const;
  void check_in_time();
  void tell_connected(const Error& error);
  [[noreturn]] void fail_lost(int peer);
  [[noreturn]] void fail_wrong_size(int peer, int size) const;

  const TcpOptions& options_;
  const Deadline deadline_;
  std::uint64_t world_id_ = 0;
  Descriptor listener_;
  Poller poller_;
  std::map<std::uint64_t, Stranger> strangers_;
  std::uint64_t last_id_ = 0;
  std::vector<Descriptor> sockets_;
  std::map<int, Descriptor> local_sockets_;
};

}  // namespace trireme::transport::internal
