#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "trireme/wire/endpoint/tcp/world.h"

namespace trireme::transport {

struct OfiOptions {
  TcpOptions tcp;

  /// Of libfabric, the same on all ranks: `efa`, `verbs;ofi_rxm`, `tcp;ofi_rxm`. Empty: the first
  /// of these that there is.
  std::string provider;

  /// How long libfabric may take nothing for a rank: then that is lost. As for a host that is gone.
  std::chrono::milliseconds patience{8'000};

  // Changes speed only; the same on all ranks.
  std::size_t min_bytes = 16 * 1024;        ///< Messages from here on take libfabric, others tcp.
  std::size_t max_piece_bytes = 128 << 20;  ///< Longer messages move in pieces, all at once.
};

/// As `connect_tcp_world`, but large payloads move over libfabric, which is loaded for it.
///
/// Errors   also kUnavailable where this build or machine has no libfabric, or the provider is not
///          there; kInvalidArgument where ranks have different ones. All ranks get the same.
/// Cost     also an endpoint of libfabric per rank.
std::unique_ptr<Endpoint> connect_ofi_world(const OfiOptions& options);

/// Why there is no libfabric with `provider` (empty: any) for this build and machine; nothing where
/// there is. It is tried on the loopback.
std::optional<Error> why_no_ofi(const std::string& provider = "");

}  // namespace trireme::transport
