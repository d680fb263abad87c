#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "trireme/base/log.h"
#include "trireme/wire/bootstrap/meeting.h"
#include "trireme/wire/bootstrap/regroup.h"
#include "trireme/wire/endpoint/endpoint.h"
#include "trireme/wire/endpoint/tcp/world.h"

namespace trireme::transport {

/// As the environment says: without `provider` a world of tcp only.
std::unique_ptr<Endpoint> connect_world(const TcpOptions& options,
                                        const std::optional<std::string>& provider);

struct ElasticWorldOptions {
  int rank = 0;
  int world_size = 1;
  std::string name = "world";  ///< Worlds that meet in the same store have different names.
  std::chrono::milliseconds deadline{60'000};  ///< For all ranks to be connected, and to leave.

  // As TcpOptions has them.
  std::string host;
  std::function<void(const Error&)> on_abandon;
  Logger logger{LogLevel::kWarning};
  bool shares_memory = true;
  std::optional<std::string> ofi_provider;  ///< As `connect_world` has it.
};

/// A rank's part in a world that can go on after the loss of ranks: an Endpoint, and the client of
/// the store through which those that are left find a new one.
///
///     ElasticWorld world(meet(...), {.rank = rank, .world_size = 4});
///     try { train(world.endpoint()); }            // groups live and end in here
///     catch (const Error&) { world.regroup(); }   // the others do the same
///
/// The ranks of a generation are 0 ... world_size - 1. Nothing of an earlier one can be taken for a
/// message of it: its connections are new, and prove a world id of its own.
///
/// Threads  caller-synchronised, but for `abort`.
class ElasticWorld {
 public:
  /// Connects to all ranks. Blocks.
  ///
  /// Errors   those of StoreClient and `connect_world`.
  ElasticWorld(Meeting meeting, ElasticWorldOptions options);

  /// Without `shutdown` before, the other ranks lose this one.
  ~ElasticWorld() = default;

  int rank() const { return rank_; }
  int world_size() const { return static_cast<int>(origins_.size()); }
  int generation() const { return generation_; }  ///< How often it has been regrouped.

  /// By rank: its rank in the first generation, which stays as long as its process.
  const std::vector<int>& origins() const { return origins_; }

  /// Of this generation; it ends in `regroup`. kUnavailable where the last `regroup` failed after
  /// its members were known.
  Endpoint& endpoint() const;

  /// Ends the world on purpose: every work of every rank fails with kCancelled, the reason and this
  /// rank, unless the world has failed before. One that is being regrouped ends when it is. Any
  /// thread.
  void abort(const std::string& reason);

  /// Goes on, after a failure, with the ranks that are left: those that call this too get new ranks
  /// in the order of the old ones, and new connections. Groups of the old endpoint have ended
  /// before. A world that is well ends first, on all ranks, as by `abort`. Blocks.
  ///
  /// options  the same on all, in ranks of the generation that has ended.
  /// Errors   those of StoreClient::regroup, and of the constructor; after either it may be called
  ///          again. kPeerLost where the store has ended with the process that served it: then
  ///          there is no way on.
  void regroup(const RegroupOptions& options = {});

  /// Orderly end: Endpoint::shutdown, then goodbye to the store.
  void shutdown();

 private:
  void connect();
  Generation agree(const RegroupOptions& options);
  std::string name_of(int generation) const;

  const ElasticWorldOptions options_;
  Meeting meeting_;
  StoreClient store_;
  int rank_;
  std::vector<int> origins_;
  int generation_ = 0;
  std::mutex mutex_;  // for what follows
  std::unique_ptr<Endpoint> endpoint_;
  std::optional<std::string> abort_reason_;  ///< Given while there was no endpoint.
};

}  // namespace trireme::transport
