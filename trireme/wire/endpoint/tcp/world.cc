#include "trireme/wire/endpoint/tcp/world.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trireme/base/environment.h"
#include "trireme/wire/endpoint/tcp/endpoint.h"
#include "trireme/wire/endpoint/tcp/flows.h"
#include "trireme/wire/endpoint/tcp/mesh.h"

namespace trireme::transport {

void internal::check_options(const TcpOptions& options) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    throw Error(ErrorKind::kInvalidArgument, "there is no rank " + std::to_string(options.rank) +
                                                 " in a world of " +
                                                 std::to_string(options.world_size) + " ranks");
  }
  if (options.num_flows < 0 || options.num_flows > kMaxTcpFlows) {
    throw Error(ErrorKind::kInvalidArgument, std::to_string(options.num_flows) +
                                                 " flows to each rank, expected 0 to " +
                                                 std::to_string(kMaxTcpFlows));
  }
}

std::unique_ptr<Endpoint> connect_tcp_world(const TcpOptions& options) {
  internal::check_options(options);
  internal::Mesh mesh(options);
  mesh.connect();
  internal::Links links{.sockets = mesh.take_sockets(),
                        .local_sockets = mesh.take_local_sockets(),
                        .hosts = mesh.hosts()};
  if (options.num_flows > 0) {
    links.carrier = std::make_unique<internal::FlowCarrier>(
        mesh.take_flows(), std::max<std::size_t>(options.min_flow_bytes, 1));
    links.path = "tcp*" + std::to_string(options.num_flows);
  }
  return std::make_unique<internal::TcpEndpoint>(options.rank, std::move(links),
                                                 options.on_abandon);
}

}  // namespace trireme::transport
