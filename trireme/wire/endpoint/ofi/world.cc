#include "trireme/wire/endpoint/ofi/world.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "trireme/wire/endpoint/ofi/carrier.h"
#include "trireme/wire/endpoint/tcp/endpoint.h"
#include "trireme/wire/endpoint/tcp/mesh.h"

namespace trireme::transport {
namespace {

using internal::Fabric;

constexpr std::array kProviders = {"efa", "verbs;ofi_rxm", "tcp;ofi_rxm"};

struct OpenFabric {
  std::string provider;
  std::unique_ptr<Fabric> fabric;
};

/// Throws the last problem where no provider can be used.
OpenFabric open_fabric(const OfiOptions& options) {
  const std::string& given = options.tcp.host;
  const std::string host = given.empty() ? options.tcp.store.local_host() : given;
  std::vector<std::string> providers(kProviders.begin(), kProviders.end());
  if (!options.provider.empty()) providers = {options.provider};
  for (const std::string& provider : providers) {
    try {
      return {provider, std::make_unique<Fabric>(provider, host, options.tcp.world_size)};
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnavailable || provider == providers.back()) throw;
    }
  }
  return {};  // not reached: the last one has thrown
}

/// As above; a rank that has no fabric ends the start of all, with the same text.
OpenFabric open_or_tell(const OfiOptions& options) {
  try {
    return open_fabric(options);
  } catch (Error& error) {
    error.add({.rank = options.tcp.rank, .operation = "start"});
    options.tcp.store.fail(error);
    throw;
  }
}

}  // namespace

std::unique_ptr<Endpoint> connect_ofi_world(const OfiOptions& options) {
  internal::check_options(options.tcp);
  OpenFabric open = open_or_tell(options);
  // The store, through which addresses are exchanged, serves members of the job only.
  internal::TcpMesh mesh(options.tcp, open.provider + " " + open.fabric->address());
  mesh.connect();
  open.fabric->add_ranks(mesh.take_fabric_addresses());
  const internal::CarrierOptions carrier{
      .min_bytes = options.min_bytes,
      .max_piece_bytes = std::min(options.max_piece_bytes, open.fabric->max_bytes()),
      .patience = options.patience};
  internal::Links links{
      .sockets = mesh.take_sockets(),
      .local_sockets = mesh.take_local_sockets(),
      .hosts = mesh.hosts(),
      .carrier = std::make_unique<internal::OfiCarrier>(std::move(open.fabric), carrier),
      .path = "ofi:" + open.provider};
  return std::make_unique<internal::TcpEndpoint>(options.tcp.rank, std::move(links),
                                                 options.tcp.on_abandon);
}

std::optional<Error> why_no_ofi(const std::string& provider) {
  try {
    if (provider.empty()) {
      internal::load_library();
    } else {
      const Fabric fabric(provider, "127.0.0.1", 1);
    }
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace trireme::transport
