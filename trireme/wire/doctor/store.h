#pragma once

#include <chrono>
#include <string>

#include "trireme/wire/bootstrap/token.h"
#include "trireme/wire/doctor/finding.h"
#include "trireme/wire/system/socket.h"

namespace trireme::doctor {

/// Tries to speak with the store at `address`, for `patience` at most: whether it answers and how
/// long that took, by which address this host reaches it, whether a rank is lost; else why not.
/// Ranks that use it are not disturbed.
///
/// token   of the store's job.
/// host    where others are to reach ranks of this host, as transport::host_of has it. A loopback
///         is found broken unless the store is at one too: then all ranks are here.
Finding examine_store(const transport::Address& address, const transport::Token& token,
                      std::chrono::milliseconds patience, const std::string& host = "");

}  // namespace trireme::doctor
