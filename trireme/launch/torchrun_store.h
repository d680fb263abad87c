#pragma once

#include <chrono>
#include <string>

#include "trireme/wire/system/socket.h"

namespace trireme::launch {

/// Through the store that torchrun serves at `agent`, rank 0 tells the others where its own is.
///
/// Blocks; errors kTimeout, kIo. `generation` sets attempts of one torchrun apart: its restart
/// count.
void publish_store(const transport::Address& agent, const std::string& generation,
                   const transport::Address& store);
transport::Address find_store(const transport::Address& agent, const std::string& generation,
                              std::chrono::milliseconds deadline);

}  // namespace trireme::launch
