#pragma once

#include <chrono>

#include "trireme/wire/doctor/finding.h"
#include "trireme/wire/transport/socket.h"

namespace trireme::doctor {

/// Tries to speak with the store at `address`, for `patience` at most: whether it answers and how
/// long that took, by which address this host reaches it, whether a rank is lost; else why not.
/// Ranks that use it are not disturbed.
Finding examine_store(const transport::Address& address, std::chrono::milliseconds patience);

}  // namespace trireme::doctor
