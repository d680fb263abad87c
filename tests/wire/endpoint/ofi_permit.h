#pragma once

#include <optional>

#include "trireme/wire/endpoint/ofi/world.h"

namespace trireme::transport::test {

/// Of libfabric, over tcp: it needs no hardware.
constexpr const char* kOfiProvider = "tcp;ofi_rxm";

/// Why nothing is tested over libfabric: it, or its provider for tcp, is absent.
inline const std::optional<Error>& why_no_ofi_test() {
  static const std::optional<Error> kReason = why_no_ofi(kOfiProvider);
  return kReason;
}

}  // namespace trireme::transport::test
