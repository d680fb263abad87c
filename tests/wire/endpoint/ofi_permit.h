#pragma once

#include <cstdlib>
#include <optional>

#include "trireme/wire/endpoint/ofi/world.h"

namespace trireme::transport::test {

/// Of libfabric, over tcp: it needs no hardware.
constexpr const char* kOfiProvider = "tcp;ofi_rxm";

/// Why nothing is tested over libfabric: it, or its provider for tcp, is absent. Before it is loaded
/// it is told to keep few buffers: to fill its usual ones with zeros takes longer than most tests.
inline const std::optional<Error>& why_no_ofi_test() {
  static const std::optional<Error> kReason = [] {
    ::setenv("FI_PROVIDER", kOfiProvider, 0);
    ::setenv("FI_OFI_RXM_MSG_RX_SIZE", "64", 0);
    ::setenv("FI_OFI_RXM_MSG_TX_SIZE", "64", 0);
    return why_no_ofi(kOfiProvider);
  }();
  return kReason;
}

}  // namespace trireme::transport::test
