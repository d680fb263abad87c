#pragma once

#include <chrono>

#include "trireme/wire/doctor/finding.h"
#include "trireme/wire/transport/socket.h"
#include "trireme/wire/transport/token.h"

namespace trireme::doctor {

/// Tries to speak with the store at `address`, for `patience` at most: whether it answers and how
/// long that took, by which address this host reaches it, whether a rank is lost; else why not.
/// Ranks that use it are not disturbed.
///
/// token   of the store's job.
Finding examine_store(const transport::Address& address, const transport::Token& token,
                      std::chrono::milliseconds patience);

}  // namespace trireme::doctor
