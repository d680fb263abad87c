#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/base/log.h"
#include "trireme/error.h"
#include "trireme/wire/bootstrap/regroup.h"
#include "trireme/wire/bootstrap/store_message.h"
#include "trireme/wire/bootstrap/token.h"
#include "trireme/wire/system/socket.h"

namespace trireme::transport {

/// Where ranks find each other: a map from keys to values (any bytes), which one process serves.
///
/// Once a rank is lost - its client's connection ended without goodbye or failed, or the owner said
/// so - every get and check of its generation fails with kPeerLost naming that rank, now and later;
/// so it does with the error that a client gave to `fail`. The first stays. Clients that `regroup`
/// begin a new generation, with new ranks; the store, its values and other clients are as before.
///
/// Who has another token, or says nothing, is turned away (admission.h).
///
/// Threads  safe from any thread; the work is done on one of its own.
class StoreServer {
 public:
  /// Errors   those of `listen_on`.
  StoreServer(const Address& address, const Token& token,
              const Logger& logger = Logger(LogLevel::kWarning, "store"));

  /// listener   of `listen_on`.
  StoreServer(const Token& token, Descriptor listener,
              const Logger& logger = Logger(LogLevel::kWarning, "store"));
  ~StoreServer();

  int port() const { return address().port; }

  /// Where it listens, with the port it has got.
  const Address& address() const;

  /// For who started the ranks and sees one end: `rank 2 is lost: <why>`, unless it has said
  /// goodbye. rank: of the first generation; those that know it by another get that.
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
  /// rank     or kObserver.
  /// policy   its deadline is also that of each call but `get` and `get_many`.
  /// Errors   those of `connect_to`; kInvalidArgument where the server has another token.
  StoreClient(const Address& address, int rank, const ConnectPolicy& policy, Token token);

  /// Without `shutdown` before, the rank counts as lost.
  ~StoreClient() = default;

  /// In its generation.
  int rank() const { return rank_; }

  /// Whether the store is there, as far as this client knows.
  bool is_connected() const { return socket_.is_open(); }

  const Address& address() const { return address_; }

  /// key   at most kMaxStoreKey bytes; value at most kMaxStoreValue; else kInvalidArgument.
  ///       kResourceExhausted where the store would hold more than kMaxStoreBytes.
  void set(std::string_view key, std::string_view value);

  /// Sets the key unless it is set; the value that it has then.
  std::string set_once(std::string_view key, std::string_view value);

  /// Whether it was set.
  bool remove(std::string_view key);

  /// Sets all of (key, value) in one request; no get comes between. kInvalidArgument where they are
  /// too many or too large for one (`pack`).
  void set_many(std::span<const std::pair<std::string, std::string>> entries);

  /// Waits until all are set, in one request: their values in the same order. kTimeout, naming some
  /// that are missing, after `deadline`; kInvalidArgument as above.
  std::vector<std::string> get_many(std::span<const std::string> keys,
                                    std::chrono::milliseconds deadline);

  /// Those of `keys` that are not set, at once, also when a rank is lost.
  std::vector<std::string> missing(std::span<const std::string> keys);

  /// From now on every get and check of its generation fails with `error`, as told by this rank.
  void fail(const Error& error);

  /// The generation of this rank has ended: goes on in the next one with those that call this too,
  /// under new ranks in the order of the old ones. Blocks until it begins.
  ///
  /// generation   its name, the same on all. world_size: of the one that has ended.
  /// Errors       kTimeout where too few came, or this rank came too late; kPeerLost where one of
  ///              options.members has ended; kInvalidArgument where ranks want other members.
  Generation regroup(const std::string& generation, int world_size, const RegroupOptions& options);

  /// Waits until the key is set; kTimeout, naming it, after `deadline`.
  std::string get(std::string_view key, std::chrono::milliseconds deadline);

  /// Adds to a number, 0 if the key is not set, and returns the sum. `get` returns it as text.
  /// kInvalidArgument where the value is no number.
  std::int64_t add(std::string_view key, std::int64_t number);

  /// Returns at once unless a rank is lost.
  void check();

  /// Says goodbye. Not an error where the store has ended before. No call may follow.
  void shutdown();

  const Token& token() const { return token_; }

  /// Host by which this process reaches the store: one at which other ranks can reach it.
  std::string local_host() const { return local_address(socket_).host; }

 private:
  void connect();
  std::string request(StoreMessage message, Deadline deadline);
  std::optional<std::string> try_request(StoreMessage message, Deadline deadline);
  void send(const StoreMessage& message, Deadline deadline);
  std::optional<StoreMessage> receive(Deadline deadline);
  [[noreturn]] void fail_store_lost();
  [[noreturn]] void fail_late() const;
  Deadline usual_deadline() const;
  ErrorContext place() const;

  const Address address_;
  int rank_;
  const ConnectPolicy policy_;
  const Token token_;
  Descriptor socket_;
  std::uint64_t last_id_ = 0;
  std::vector<std::byte> received_;
};

}  // namespace trireme::transport
