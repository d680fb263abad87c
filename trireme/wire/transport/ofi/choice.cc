#include "trireme/wire/transport/ofi/world.h"

namespace trireme::transport {

std::unique_ptr<Endpoint> connect_world(const TcpOptions& options,
                                        const std::optional<std::string>& provider) {
  if (!provider) return connect_tcp_world(options);
  return connect_ofi_world({.tcp = options, .provider = *provider});
}

}  // namespace trireme::transport
