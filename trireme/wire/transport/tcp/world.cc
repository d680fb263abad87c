#include "trireme/wire/transport/tcp/world.h"

#include <string>

#include "trireme/wire/transport/tcp/endpoint.h"
#include "trireme/wire/transport/tcp/mesh.h"

namespace trireme::transport {

std::unique_ptr<Endpoint> connect_tcp_world(const TcpOptions& options) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    throw Error(ErrorKind::kInvalidArgument, "there is no rank " + std::to_string(options.rank) +
                                                 " in a world of " +
                                                 std::to_string(options.world_size) + " ranks");
  }
  internal::Mesh mesh(options);
  mesh.connect();
  return std::make_unique<internal::TcpEndpoint>(
      options.rank, mesh.take_sockets(),
      internal::TcpEndpoint::Local{mesh.take_local_sockets(), mesh.hosts()}, options.on_abandon);
}

}  // namespace trireme::transport
