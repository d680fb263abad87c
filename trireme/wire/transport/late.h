#pragma once

#include <span>
#include <string>

#include "trireme/wire/transport/endpoint.h"

namespace trireme::transport {

/// `rank 1`, `ranks 1, 2`, `no rank`.
std::string ranks_text(std::span<const int> ranks);

/// Ends a wait that was too long: poisons `endpoint` with `late`, waits until `work` has ended, so
/// that the memory lent to it may go, and throws what ended the world: `late`, or what came before.
///
/// work   of the endpoint, or of a group over it.
[[noreturn]] void give_up(Work& work, Endpoint& endpoint, const Error& late);

}  // namespace trireme::transport
