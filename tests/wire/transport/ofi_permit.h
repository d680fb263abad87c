#pragma once

#include <cstdlib>
#include <optional>

#include "trireme/wire/transport/ofi/world.h"

namespace trireme::transport::test {

/// Why nothing is tested over libfabric: it is absent, or not asked for. Its tcp;ofi_rxm has ended
/// the process when it was closed with payloads under way.
inline std::optional<Error> why_no_ofi_test() {
  if (std::getenv("TRIREME_TEST_OFI") == nullptr) {
    return Error(ErrorKind::kUnavailable, "TRIREME_TEST_OFI=1 asks for tests over libfabric");
  }
  return why_no_ofi();
}

}  // namespace trireme::transport::test
