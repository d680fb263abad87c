#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "trireme/wire/bootstrap/store.h"
#include "trireme/wire/endpoint/endpoint.h"

namespace trireme::transport {

struct TcpOptions {
  StoreClient& store;  ///< Used during the call only; its token is that of all connections.
  int rank = 0;
  int world_size = 1;
  std::string name = "world";  ///< Worlds that meet in the same store have different names.
  std::chrono::milliseconds deadline{60'000};  ///< For all ranks to be connected.

  /// Where others reach this rank; empty: by the address that routes to the store.
  std::string host = {};

  /// Called on a thread of the endpoint 1 s after the world has failed, if none of the owner's has
  /// been given the error until then: it is stuck elsewhere. May end the process.
  std::function<void(const Error&)> on_abandon = nullptr;

  Logger logger{LogLevel::kWarning};  ///< Of who is turned away during the start.

  // Changes speed only.
  bool shares_memory = true;  ///< With ranks of this host.
  /// Per direction and connection; 0: the system's default, but between hosts whose links are slow a
  /// share (`shared_window`), so that many that send to one do not fill its link's queue.
  int socket_buffer_bytes = 0;
};

/// Meets the other ranks in the store and connects to all of them. Blocks until that is done.
///
/// Errors   kInvalidArgument where the ranks do not agree on the world's size or token; kPeerLost
/// where one
///          is lost; kTimeout, naming who is missing;
///          kInvalidArgument, naming interface and variable, where some ranks can be reached from
///          their own host only and others are elsewhere.
/// Cost     world_size - 1 connections per rank, one thread.
std::unique_ptr<Endpoint> connect_tcp_world(const TcpOptions& options);

namespace internal {
/// kInvalidArgument where the rank is none of the world's.
void check_options(const TcpOptions& options);
}  // namespace internal

}  // namespace trireme::transport
