// In place of world.cc where the headers of libfabric were not found.

#include "trireme/wire/endpoint/ofi/world.h"

namespace trireme::transport {

std::unique_ptr<Endpoint> connect_ofi_world(const OfiOptions& options) {
  internal::check_options(options.tcp);
  const Error error = *why_no_ofi();
  options.tcp.store.fail(error);
  throw Error(error);
}

std::optional<Error> why_no_ofi(const std::string&) {
  return Error(ErrorKind::kUnavailable,
               "this program was built without libfabric's headers; install them (Debian: "
               "libfabric-dev) and configure the build anew, or set TRIREME_TRANSPORT=tcp");
}

}  // namespace trireme::transport
