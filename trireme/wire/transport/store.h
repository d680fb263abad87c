#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "trireme/wire/transport/socket.h"
#include "trireme/wire/transport/store_message.h"

namespace trireme::transport {

/// Where ranks find each other: a map from keys to values (any bytes), which one process serves.
///
/// Once a rank is lost - its client's connection ended without goodbye or failed, or the owner said
/// so -
/// every get and check fails with kPeerLost naming that rank, now and later. The first loss stays.
///
/// Threads  safe from any thread; the work is done on one of its own.
class StoreServer {
 public:
  /// Errors   those of `listen_on`.
  explicit StoreServer(const Address& address = {});
  ~StoreServer();

  int port() const { return address().port; }

  /// Where it listens, with the port it has got.
  const Address& address() const;

  /// For who started the ranks and sees one end: `rank 2 is lost: <why>`, unless it has said
  /// goodbye.
  void mark_lost(int rank, const std::string& why);

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

/// One rank's connection to the store.
///
/// Errors   kPeerLost of a lost rank (get, check), or where the store's process has ended (all).
/// Threads  caller-synchronised. All calls block.
class StoreClient {
 public:
  /// policy   its deadline is also that of each call but `get`.
  /// Errors   those of `connect_to`.
  StoreClient(const Address& address, int rank, const ConnectPolicy& policy = {});

  /// Without `shutdown` before, the rank counts as lost.
  ~StoreClient() = default;

  int rank() const { return rank_; }

  /// key   at most kMaxStoreKey bytes; value at most kMaxStoreValue; else kInvalidArgument.
  void set(std::string_view key, std::string_view value);

  /// Waits until the key is set; kTimeout, naming it, after `deadline`.
  std::string get(std::string_view key, std::chrono::milliseconds deadline);

  /// Adds to a number, 0 if the key is not set, and returns the sum. `get` returns it as text.
  /// kInvalidArgument where the value is no number.
  std::int64_t add(std::string_view key, std::int64_t number);

  /// Returns at once unless a rank is lost.
  void check();

  /// Says goodbye. Not an error where the store has ended before. No call may follow.
  void shutdown();

  /// Host by which this process reaches the store: one at which other ranks can reach it.
  std::string local_host() const { return local_address(socket_).host; }

 private:
  std::string request(StoreMessage message, Deadline deadline);
  void send(const StoreMessage& message, Deadline deadline);
  StoreMessage receive(Deadline deadline);
  [[noreturn]] void fail_store_lost();
  Deadline usual_deadline() const;

  const Address address_;
  const int rank_;
  const ConnectPolicy policy_;
  Descriptor socket_;
  std::uint64_t last_id_ = 0;
  std::vector<std::byte> received_;
};

}  // namespace trireme::transport
