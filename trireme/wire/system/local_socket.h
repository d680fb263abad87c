#pragma once

#include <string>

#include "trireme/base/descriptor.h"

namespace trireme::transport::internal {

// Abstract Unix sockets (SOCK_SEQPACKET): known in one network namespace, gone with their process.
// Errors are kIo with the system's reason, where nothing else is said.

/// Listens under `name`, or where it is empty under one that the system chooses.
///
/// Errors   kInvalidArgument where another process has the name.
Descriptor listen_locally(const std::string& name = "");

/// Its name, without the zero before it.
std::string name_of(const Descriptor& listener);

/// A connection; closed where nobody listens under `name`, or too many wait to be accepted.
Descriptor try_connect_locally(const std::string& name);

/// Whether the other side is a process of this user.
bool is_of_this_user(const Descriptor& socket);

}  // namespace trireme::transport::internal
