#include "trireme/wire/endpoint/tcp/world.h"

#include <string>
#include <utility>

#include "trireme/wire/endpoint/tcp/endpoint.h"
#include "trireme/wire/endpoint/tcp/mesh.h"

namespace trireme::transport {

void internal::check_options(const TcpOptions& options) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    throw Error(ErrorKind::kInvalidArgument, "there is no rank " + std::to_string(options.rank) +
                                                 " in a world of " +
                                                 std::to_string(options.world_size) + " ranks");
  }
}

std::unique_ptr<Endpoint> connect_tcp_world(const TcpOptions& options) {
  internal::check_options(options);
  internal::TcpMesh mesh(options);
  mesh.connect();
  internal::Links links{.sockets = mesh.take_sockets(),
                        .local_sockets = mesh.take_local_sockets(),
                        .hosts = mesh.hosts()};
  return std::make_unique<internal::TcpEndpoint>(options.rank, std::move(links),
                                                 options.on_abandon);
}

}  // namespace trireme::transport
